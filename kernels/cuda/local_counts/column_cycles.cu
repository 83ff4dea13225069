// Count 4-cycles by their smallest vertices v, a range of columns of the adjacency at a time: of every list the part in
// the columns is on the device, and whole lists come one after the other. The wedges y - x - v, with x, y > v, of each
// list's owner y are counted by their end v, and every two wedges with the same ends are a cycle.
#include "hash_table.cuh"
#include "pages.cuh"

constexpr u32 kWarpSlots = 2 * kLightWedges;
constexpr u32 kAlone = 8;  // entries of a part that a lane reads alone: where columns are few, most parts are short

// The parts of the lists of the vertices behind `low` that are in the columns low to high - 1, one behind the other.
struct Columns {
  const u32* arcs;
  const u32* ends;  // u32[num_vertices - low - 1], where each part ends
  i64 low, high;

  DEVICE u32 begin(i64 x) const { return x > low + 1 ? ends[x - low - 2] : 0; }
  DEVICE u32 end(i64 x) const { return x > low ? ends[x - low - 1] : 0; }
};

struct Part {
  i64 begin, length;
};

// The part of the list of x, among its smaller neighbours, where it is read.
DEVICE Part part_of(const Rows& graph, i64 x, i64 low, i64 high) {
  const i64 begin = graph.indptr[x], length = graph.split[x] - begin;
  const i64 place = place_of_list(graph.places, begin, length);
  const i64 from = lower_bound(graph.indices + place, length, static_cast<u32>(low));
  const i64 to = high > x ? length : lower_bound(graph.indices + place, length, static_cast<u32>(high));
  return {place + from, to - from};
}

// The lengths of the parts of the vertices behind `low`.
extern "C" __global__ void __launch_bounds__(256)
    measure_columns(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices,
                    i64 low, i64 high, u32* lengths) {
  const Rows graph = {indptr, indices, split, places};
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 x = low + 1 + static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; x < num_vertices; x += threads)
    lengths[x - low - 1] = static_cast<u32>(part_of(graph, x, low, high).length);
}

// Copy the parts, of 32 vertices by a warp.
extern "C" __global__ void __launch_bounds__(256)
    copy_columns(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices, i64 low,
                 i64 high, const u32* ends, u32* arcs) {
  const Rows graph = {indptr, indices, split, places};
  const Columns columns = {arcs, ends, low, high};
  const int lane = lane_id();
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 base = low + 1 + static_cast<i64>(blockIdx.x) * blockDim.x + 32 * warp_in_block(); base < num_vertices;
       base += step) {
    const i64 x = base + lane;
    const u32 to = x < num_vertices ? columns.begin(x) : 0, length = x < num_vertices ? columns.end(x) - to : 0;
    const i64 from = length ? part_of(graph, x, low, high).begin : 0;
    for (u32 left = __ballot_sync(kAll, length > 0); left; left &= left - 1) {
      const int one = __ffs(left) - 1;
      const i64 source = __shfl_sync(kAll, from, one);
      const u32 target = __shfl_sync(kAll, to, one), number = __shfl_sync(kAll, length, one);
      for (u32 i = lane; i < number; i += 32) arcs[target + i] = indices[source + i];
    }
  }
}

// Call visit(v) for the ends of y's wedges in the columns low to high - 1, which are columns of `columns`, each lane for
// its own; the warps of a block share out the middle vertices.
template <typename Visit>
DEVICE void for_each_end(const Rows& graph, const Columns& columns, i64 y, i64 low, i64 high, int warp, int warps,
                         Visit visit) {
  const int lane = lane_id();
  const i64 row = graph.indptr[y], length = graph.indptr[y + 1] - row;
  const i64 place = place_of_list(graph.places, row, length);
  const bool all = low == columns.low && high == columns.high;
  for (i64 base = warp; base < length; base += 32 * warps) {
    const i64 own = base + static_cast<i64>(lane) * warps;
    const i64 x = own < length ? graph.indices[place + own] : 0;
    u32 begin = columns.begin(x), end = columns.end(x);
    if (!all && begin < end) {
      const u32* part = columns.arcs + begin;
      const u32 size = end - begin;
      end = begin + lower_bound(part, size, static_cast<u32>(high));
      begin += lower_bound(part, size, static_cast<u32>(low));
    }
    const bool alone = end - begin <= kAlone;
    for (u32 i = begin; alone && i < end; ++i) {
      const u32 v = columns.arcs[i];
      if (v < y) visit(v);
    }
    for (u32 left = __ballot_sync(kAll, !alone); left; left &= left - 1) {
      const int one = __ffs(left) - 1;
      const u32 last = __shfl_sync(kAll, end, one);
      for (u32 i = __shfl_sync(kAll, begin, one) + lane; i < last; i += 32) {
        const u32 v = columns.arcs[i];
        if (v < y) visit(v);
      }
    }
  }
}

// Number of wedges of each y from `first` to `last` - 1, or more where y is among the columns: sizes[y - first]. Those of
// more than kLightWedges are written to `heavy`, in no order.
extern "C" __global__ void __launch_bounds__(256, 4)
    measure_wedges(const i64* indptr, const u32* indices, const i64* split, const i64* places, const u32* arcs,
                   const u32* ends, i64 low, i64 high, i64 first, i64 last, i64* sizes, u32* heavy, u32* num_heavy) {
  const Columns columns = {arcs, ends, low, high};
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  for (i64 y = first + static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); y < last; y += warps) {
    const i64 row = indptr[y], length = indptr[y + 1] - row, place = place_of_list(places, row, length);
    i64 found = 0;
    for (i64 i = lane_id(); y > low && i < length; i += 32) {
      const i64 x = indices[place + i];
      found += columns.end(x) - columns.begin(x);
    }
    found = warp_sum(found);
    if (lane_id() == 0) {
      sizes[y - first] = found;
      if (found > kLightWedges) heavy[atomicAdd(num_heavy, 1u)] = static_cast<u32>(y);
    }
  }
}

// Vertices of few wedges: a warp each, ends in a hash table.
extern "C" __global__ void __launch_bounds__(256, 2)
    count_light(const i64* indptr, const u32* indices, const i64* split, const i64* places, const u32* arcs,
                const u32* ends, i64 low, i64 high, i64 first, i64 last, const i64* sizes, u32* next, const u32* stop,
                u64* result) {
  const Rows graph = {indptr, indices, split, places};
  const Columns columns = {arcs, ends, low, high};
  u32* table = dynamic_shared + warp_in_block() * 2 * kWarpSlots;
  u32* wedges = table + kWarpSlots;
  u64 total = 0;
  for (;;) {
    const i64 from = first + take(next, 32);
    if (from >= last || stop_asked(stop)) break;
    const i64 own = from + lane_id();
    const i64 size = own < last ? sizes[own - first] : 0;
    // A single wedge makes no cycle.
    for (u32 wanted = __ballot_sync(kAll, size > 1 && size <= kLightWedges); wanted; wanted &= wanted - 1) {
      const int i = __ffs(wanted) - 1;
      const u32 slots = table_slots(static_cast<u32>(__shfl_sync(kAll, size, i)), 2);
      for (u32 slot = lane_id(); slot < slots; slot += 32) {
        table[slot] = kNoVertex;
        wedges[slot] = 0;
      }
      __syncwarp();
      for_each_end(graph, columns, from + i, low, high, 0, 1,
                   [&](u32 v) { total += atomicAdd(&wedges[insert(table, slots, v)], 1u); });
      __syncwarp();
    }
  }
  add_result(result, total, 0);
}

// Vertices of many wedges: a block each. Ends are counted in a hash table where that is short, else in a counter for
// each column, for as many columns at a time as there are counters, `window` words in all.
extern "C" __global__ void __launch_bounds__(1024, 1)
    count_heavy(const i64* indptr, const u32* indices, const i64* split, const i64* places, const u32* arcs,
                const u32* ends, i64 low, i64 high, i64 first, const i64* sizes, const u32* heavy,
                const u32* num_heavy, i64 window, u32* next, const u32* stop, u64* result) {
  const Rows graph = {indptr, indices, split, places};
  const Columns columns = {arcs, ends, low, high};
  const int warp = warp_in_block(), warps = blockDim.x >> 5;
  u32* words = dynamic_shared + 4;
  u64 total = 0;
  for (;;) {
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
    __syncthreads();
    const u32 number = dynamic_shared[0];
    __syncthreads();
    if (number >= *num_heavy) break;
    const i64 y = heavy[number], size = sizes[y - first], beyond = min(high, y);
    const u32 slots = 4 * size < window ? table_slots(static_cast<u32>(size), 2) : 0;  // at most twice that, and counters
    if (slots && 2 * slots <= min(window, 2 * (beyond - low))) {
      for (u32 slot = threadIdx.x; slot < slots; slot += blockDim.x) {
        words[slot] = kNoVertex;
        words[slots + slot] = 0;
      }
      __syncthreads();
      for_each_end(graph, columns, y, low, high, warp, warps,
                   [&](u32 v) { total += atomicAdd(&words[slots + insert(words, slots, v)], 1u); });
      __syncthreads();
      continue;
    }
    for (i64 from = low; from < beyond; from += window) {
      const i64 to = min(from + window, beyond);
      for (i64 i = threadIdx.x; i < to - from; i += blockDim.x) words[i] = 0;
      __syncthreads();
      for_each_end(graph, columns, y, from, from == low && to == beyond ? high : to, warp, warps,
                   [&](u32 v) { total += atomicAdd(&words[v - from], 1u); });
      __syncthreads();
    }
  }
  add_result(result, total, 0);
}
