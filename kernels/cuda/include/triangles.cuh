// Find triangles: the out-neighbours of a vertex (those with a smaller id) go into a hash table in shared memory, then the
// out-neighbours of each of them are looked up.
#pragma once
#include "hash_table.cuh"
#include "pages.cuh"

// Vertices of at most kLight out-neighbours are a warp's work, the others a block's.
constexpr int kLight = 16;
constexpr u32 kWarpSlots = 1024, kBlockSlots = 8192;
constexpr int kPiece = kBlockSlots / 2;  // out-neighbours in the table at a time

// Where triangles are counted: at the vertices from `first` on, as many as there is room for.
struct VertexCounts {
  static constexpr bool vertices = true, arcs = false;

  u64* values;
  u64 first, size;

  DEVICE void add(u64 vertex, u64 number) const {
    if (vertex - first < size) atomicAdd(&values[vertex - first], number);
  }
};

// At the arcs from `first` on: at both arcs of the largest vertex (`largest`), and at that between the others (`smaller`).
struct ArcCounts {
  static constexpr bool vertices = false, arcs = true;

  u32* values;
  u64 first, size;
  bool largest, smaller;

  DEVICE void add(u64 arc, u32 number) const {
    if (arc - first < size) atomicAdd(&values[arc - first], number);
  }
};

// The out-neighbours that others are looked up of: low to high - 1.
struct Targets {
  i64 low, high;

  // Narrow indices[begin:end], which ascends, to them. The vertex whose out-neighbours these are is larger than all.
  DEVICE void narrow(const u32* indices, i64 vertex, i64& begin, i64& end) const {
    if (vertex <= low) {
      begin = end;
      return;
    }
    if (vertex > high) end = begin + lower_bound(indices + begin, end - begin, static_cast<u32>(high));
    if (low) begin += lower_bound(indices + begin, end - begin, static_cast<u32>(low));
  }
};

// Look up the out-neighbours of the vertices in indices[begin:end:step], arcs or their copies, which lie `shift` behind.
// Return this lane's hits, which are counted per slot of the table, too, and where `counts` says.
template <typename Counts>
DEVICE u64 look_up(const Rows& graph, i64 begin, i64 end, i64 shift, int step, const u32* table, u32 slots, u32* hits,
                   const Counts& counts) {
  const int lane = lane_id();
  u64 total = 0;
  for (i64 base = begin; base < end; base += 32 * step) {
    // The lanes fetch the next 32 rows' bounds together.
    const i64 own = base + static_cast<i64>(lane) * step;
    const u32 vertex = own < end ? graph.indices[own] : 0;
    i64 row = own < end ? graph.indptr[vertex] : 0;
    const int length = own < end ? static_cast<int>(graph.split[vertex] - row) : 0;
    const i64 list = row;
    row = place_of_list(graph.places, row, length);
    const int active = static_cast<int>(min((end - base + step - 1) / step, i64(32)));
    for (int i = 0; i < active; ++i) {
      const u32* neighbours = graph.indices + __shfl_sync(kAll, row, i);
      const int count = __shfl_sync(kAll, length, i);
      [[maybe_unused]] i64 first = 0;
      if constexpr (Counts::arcs) first = __shfl_sync(kAll, list, i);
      u32 found = 0;
      for (int j = lane; j < count; j += 32) {
        const u32 slot = find(table, slots, neighbours[j]);
        if (slot != slots) {
          ++found;
          if constexpr (Counts::vertices) atomicAdd(&hits[slot], 1u);
          if constexpr (Counts::arcs) {
            if (counts.largest) atomicAdd(&hits[slot], 1u);
            if (counts.smaller) counts.add(first + j, 1);
          }
        }
      }
      total += found;
      if constexpr (Counts::vertices) {
        const u32 all = warp_sum(found);
        const u32 u = __shfl_sync(kAll, vertex, i);
        if (lane == 0 && all) counts.add(u, all);
      }
      if constexpr (Counts::arcs) {
        const u32 all = warp_sum(found);
        if (lane == 0 && all && counts.largest) counts.add(base + static_cast<i64>(i) * step - shift, all);
      }
    }
  }
  return total;
}

// Add the hits of the slots to the counts of their vertices, or of the arcs `arc` and those after it, whose
// out-neighbours in the table are `elements`.
template <typename Counts>
DEVICE void flush(const u32* table, const u32* hits, u32 slots, const u32* elements, int number, i64 arc, u32 thread,
                  u32 threads, const Counts& counts) {
  if constexpr (Counts::vertices) {
    for (u32 slot = thread; slot < slots; slot += threads)
      if (table[slot] != kNoVertex && hits[slot]) counts.add(table[slot], hits[slot]);
  }
  if constexpr (Counts::arcs) {
    if (!counts.largest) return;
    for (int i = thread; i < number; i += threads) {
      const u32 found = hits[find(table, slots, elements[i])];
      if (found) counts.add(arc + i, found);
    }
  }
}

template <typename Counts>
DEVICE void light_vertices(const Rows& graph, i64 num_vertices, i64 first, i64 last, const Targets& targets, u32* next,
                           const u32* stop, const Counts& counts) {
  const int lane = lane_id();
  const VertexRange range = vertices_of_slots(graph.indptr, num_vertices, first, last);
  u32* table = dynamic_shared + warp_in_block() * 2 * kWarpSlots;
  u32* hits = table + kWarpSlots;
  for (;;) {
    const i64 from = range.begin + take(next, 8);
    if (from >= range.end || stop_asked(stop)) break;
    const i64 to = min(from + 8, range.end);
    for (i64 v = from; v < to; ++v) {
      const i64 a = graph.indptr[v], z = graph.split[v];
      const int degree = static_cast<int>(z - a);
      i64 begin = max(a, first), end = min(z, last);
      if (degree < 2 || degree > kLight || begin >= end) continue;
      const i64 shift = place_of_list(graph.places, a, degree) - a;
      targets.narrow(graph.indices + shift, v, begin, end);
      if (begin >= end) continue;
      const u32 slots = table_slots(degree, 4);
      for (u32 slot = lane; slot < slots; slot += 32) {
        table[slot] = kNoVertex;
        hits[slot] = 0;
      }
      __syncwarp();
      for (int i = lane; i < degree; i += 32) insert(table, slots, graph.indices[a + shift + i]);
      __syncwarp();
      u64 found = look_up(graph, begin + shift, end + shift, shift, 1, table, slots, hits, counts);
      __syncwarp();
      flush(table, hits, slots, graph.indices + a + shift, degree, a, lane, 32, counts);
      if constexpr (Counts::vertices) {
        found = warp_sum(found);
        if (lane == 0 && found) counts.add(v, found);
      }
      __syncwarp();
    }
  }
}

// A block for each vertex; `tasks` as find_heavy lists them, one for each vertex.
template <typename Counts>
DEVICE void heavy_vertices(const Rows& graph, const u32* tasks, const u32* num_tasks, i64 first, i64 last,
                           const Targets& targets, u32* next, const u32* stop, const Counts& counts) {
  const int warps = blockDim.x >> 5;
  u32* table = dynamic_shared + 4;
  u32* hits = table + kBlockSlots;
  for (;;) {
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
    __syncthreads();
    const u32 task = dynamic_shared[0];
    __syncthreads();
    if (task >= *num_tasks) break;
    const i64 v = tasks[2 * task];
    const i64 a = graph.indptr[v], z = graph.split[v];
    i64 begin = max(a, first), end = min(z, last);
    const i64 shift = place_of_list(graph.places, a, z - a) - a;
    targets.narrow(graph.indices + shift, v, begin, end);
    if (begin >= end) continue;
    u64 found = 0;
    for (i64 piece = a; piece < z; piece += kPiece) {
      const int elements = static_cast<int>(min(z - piece, i64(kPiece)));
      const u32 slots = min(table_slots(elements, 4), kBlockSlots);
      for (u32 slot = threadIdx.x; slot < slots; slot += blockDim.x) {
        table[slot] = kNoVertex;
        hits[slot] = 0;
      }
      __syncthreads();
      for (int i = threadIdx.x; i < elements; i += blockDim.x) insert(table, slots, graph.indices[piece + shift + i]);
      __syncthreads();
      found += look_up(graph, begin + shift + warp_in_block(), end + shift, shift, warps, table, slots, hits, counts);
      __syncthreads();
      flush(table, hits, slots, graph.indices + piece + shift, elements, piece, threadIdx.x, blockDim.x, counts);
      __syncthreads();
    }
    if constexpr (Counts::vertices) {
      found = warp_sum(found);
      if (lane_id() == 0 && found) counts.add(v, found);
    }
  }
}
