// Count triangles: the out-neighbours of a vertex (those with a smaller id) go into a hash table in shared memory,
// then the out-neighbours of each of them are looked up. In all, or per vertex; only of those in a range, if asked for.
#include "hash_table.cuh"
#include "pages.cuh"

// Vertices of at most kLight out-neighbours are a warp's work, the others a block's.
constexpr int kLight = 16;
constexpr u32 kWarpSlots = 1024, kBlockSlots = 8192;
constexpr int kPiece = kBlockSlots / 2;  // out-neighbours in the table at a time

// Counts of the vertices from `first` on, as many as there is room for.
struct Counts {
  u64* values;
  u64 first, size;

  DEVICE void add(u64 vertex, u64 number) const {
    if (vertex - first < size) atomicAdd(&values[vertex - first], number);
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

// Look up the out-neighbours of the vertices in indices[begin:end:step], arcs or their copies. Return this lane's hits.
// With PER_VERTEX, hits are also counted per slot of the table, and per vertex that was looked from.
template <bool PER_VERTEX>
DEVICE u64 look_up(const Rows& graph, i64 begin, i64 end, int step, const u32* table, u32 slots, u32* hits,
                   const Counts& counts) {
  const int lane = lane_id();
  u64 total = 0;
  for (i64 base = begin; base < end; base += 32 * step) {
    // The lanes fetch the next 32 rows' bounds together.
    const i64 own = base + static_cast<i64>(lane) * step;
    const u32 vertex = own < end ? graph.indices[own] : 0;
    i64 row = own < end ? graph.indptr[vertex] : 0;
    const int length = own < end ? static_cast<int>(graph.split[vertex] - row) : 0;
    row = place_of_list(graph.places, row, length);
    const int active = static_cast<int>(min((end - base + step - 1) / step, i64(32)));
    for (int i = 0; i < active; ++i) {
      const u32* neighbours = graph.indices + __shfl_sync(kAll, row, i);
      const int count = __shfl_sync(kAll, length, i);
      u32 found = 0;
      for (int j = lane; j < count; j += 32) {
        const u32 slot = find(table, slots, neighbours[j]);
        if (slot != slots) {
          ++found;
          if (PER_VERTEX) atomicAdd(&hits[slot], 1u);
        }
      }
      total += found;
      if (PER_VERTEX) {
        const u32 all = warp_sum(found);
        const u32 u = __shfl_sync(kAll, vertex, i);
        if (lane == 0 && all) counts.add(u, all);
      }
    }
  }
  return total;
}

template <bool PER_VERTEX>
DEVICE void flush(const u32* table, const u32* hits, u32 slots, u32 thread, u32 threads, const Counts& counts) {
  if (!PER_VERTEX) return;
  for (u32 slot = thread; slot < slots; slot += threads)
    if (table[slot] != kNoVertex && hits[slot]) counts.add(table[slot], hits[slot]);
}

template <bool PER_VERTEX>
DEVICE void light_vertices(const Rows& graph, i64 num_vertices, i64 first, i64 last, const Targets& targets, u32* next,
                           const u32* stop, u64* result, const Counts& counts) {
  const int lane = lane_id();
  const VertexRange range = vertices_of_slots(graph.indptr, num_vertices, first, last);
  u32* table = dynamic_shared + warp_in_block() * kWarpSlots * (PER_VERTEX ? 2 : 1);
  u32* hits = table + kWarpSlots;
  u64 total = 0;
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
        if (PER_VERTEX) hits[slot] = 0;
      }
      __syncwarp();
      for (int i = lane; i < degree; i += 32) insert(table, slots, graph.indices[a + shift + i]);
      __syncwarp();
      u64 found = look_up<PER_VERTEX>(graph, begin + shift, end + shift, 1, table, slots, hits, counts);
      if (PER_VERTEX) {
        __syncwarp();
        flush<PER_VERTEX>(table, hits, slots, lane, 32, counts);
        found = warp_sum(found);
        if (lane == 0 && found) counts.add(v, found);
      }
      total += found;
      __syncwarp();
    }
  }
  if (!PER_VERTEX) add_parts(result, total);
}

// A block for each vertex; `tasks` as find_heavy lists them, one for each vertex.
template <bool PER_VERTEX>
DEVICE void heavy_vertices(const Rows& graph, const u32* tasks, const u32* num_tasks, i64 first, i64 last,
                           const Targets& targets, u32* next, const u32* stop, u64* result, const Counts& counts) {
  const int warps = blockDim.x >> 5;
  u32* table = dynamic_shared + 4;
  u32* hits = table + kBlockSlots;
  u64 total = 0;
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
        if (PER_VERTEX) hits[slot] = 0;
      }
      __syncthreads();
      for (int i = threadIdx.x; i < elements; i += blockDim.x) insert(table, slots, graph.indices[piece + shift + i]);
      __syncthreads();
      found += look_up<PER_VERTEX>(graph, begin + shift + warp_in_block(), end + shift, warps, table, slots, hits,
                                   counts);
      __syncthreads();
      if (PER_VERTEX) {
        flush<PER_VERTEX>(table, hits, slots, threadIdx.x, blockDim.x, counts);
        __syncthreads();
      }
    }
    if (PER_VERTEX) {
      found = warp_sum(found);
      if (lane_id() == 0 && found) counts.add(v, found);
    }
    total += found;
  }
  if (!PER_VERTEX) add_parts(result, total);
}

extern "C" __global__ void __launch_bounds__(256, 4)
    count_light(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices,
                i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u64* result) {
  light_vertices<false>({indptr, indices, split, places}, num_vertices, first, last, {low, high}, next, stop, result,
                        {});
}

extern "C" __global__ void __launch_bounds__(256, 4)
    count_heavy(const i64* indptr, const u32* indices, const i64* split, const i64* places, const u32* tasks,
                const u32* num_tasks, i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u64* result) {
  heavy_vertices<false>({indptr, indices, split, places}, tasks, num_tasks, first, last, {low, high}, next, stop, result,
                        {});
}

extern "C" __global__ void __launch_bounds__(256, 2)
    add_light(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices,
              i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u64* counts, u64 first_count,
              u64 num_counts) {
  light_vertices<true>({indptr, indices, split, places}, num_vertices, first, last, {low, high}, next, stop, nullptr,
                       {counts, first_count, num_counts});
}

extern "C" __global__ void __launch_bounds__(256, 2)
    add_heavy(const i64* indptr, const u32* indices, const i64* split, const i64* places, const u32* tasks,
              const u32* num_tasks, i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u64* counts,
              u64 first_count, u64 num_counts) {
  heavy_vertices<true>({indptr, indices, split, places}, tasks, num_tasks, first, last, {low, high}, next, stop, nullptr,
                       {counts, first_count, num_counts});
}
