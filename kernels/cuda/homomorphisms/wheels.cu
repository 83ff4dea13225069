// Count wheels of four spokes: cycles of four vertices among the neighbours of a vertex r, found at the arc (r, x) to
// their smallest vertex x; see longwall.kernels.cpu.homomorphisms.wheels.
//
// Lists of common neighbours are places of arcs of r, so counters have a place for each that follows x'.
#include "common.cuh"

constexpr i64 kArcs = 8;  // that a block takes at once: those of the first hubs are millions of walks each

struct Lists {
  const i64* starts;
  const u32* common;
};

// How often something of each place behind arc `a` was met.
struct Counters {
  u32 *near, *far;
  i64 window;

  DEVICE u32& operator[](i64 offset) const { return offset < window ? near[offset] : far[offset]; }
};

// Count the ends z of the walks x - y - z of arc a, y, z > x, by some warps; false where there are fewer than two y.
DEVICE bool count_walks(const Lists& lists, i64 a, int warp, int warps, const Counters& counters) {
  const int lane = lane_id();
  const i64 begin = lists.starts[a], end = lists.starts[a + 1];
  const i64 larger = begin + lower_bound(lists.common + begin, end - begin, static_cast<u32>(a));
  if (end - larger < 2) return false;
  for (i64 base = larger + warp; base < end; base += 32 * warps) {
    // The lanes fetch the bounds of the next lists together.
    const i64 own = base + static_cast<i64>(lane) * warps;
    const u32 arc = own < end ? lists.common[own] : 0;
    const i64 own_begin = own < end ? lists.starts[arc] : 0, own_end = own < end ? lists.starts[arc + 1] : 0;
    const int active = static_cast<int>(min((end - base + warps - 1) / warps, i64(32)));
    for (int i = 0; i < active; ++i) {
      const i64 list = __shfl_sync(kAll, own_begin, i);
      // Lists ascend, so the places behind a stand at the end.
      for (i64 at = __shfl_sync(kAll, own_end, i) - 1 - lane; at >= list; at -= 32) {
        const i64 offset = static_cast<i64>(lists.common[at]) - a - 1;
        if (offset < 0) break;
        atomicAdd(&counters[offset], 1u);
      }
      __syncwarp();
    }
  }
  return true;
}

// Add the pairs of walks with one end, and clear the counters.
DEVICE u64 take_pairs(const Counters& counters, i64 number, i64 thread, i64 threads) {
  u64 total = 0;
  for (i64 offset = thread; offset < number; offset += threads) {
    const u64 walks = counters[offset];
    if (!walks) continue;
    total += walks * (walks - 1) / 2;
    counters[offset] = 0;
  }
  return total;
}

// The wheels of the arcs first to last - 1. store: u32[blocks][store_words], zeros, for what has no room in shared memory.
extern "C" __global__ void __launch_bounds__(256)
    count_wheels(const i64* indptr, i64 num_vertices, const i64* starts, const u32* common, i64 first, i64 last,
                 i64 window, i64 words, u32* store, i64 store_words, u32* next, const u32* stop, u64* result) {
  const Lists lists = {starts, common};
  const int warp = warp_in_block(), warps = blockDim.x >> 5;
  u32* near = dynamic_shared + 4;
  const Counters all = {near, store + blockIdx.x * store_words, window};
  const Counters own = {near + warp * kWarpCounters, nullptr, kWarpCounters};
  u64 total = 0;
  for (i64 i = threadIdx.x; i < words; i += blockDim.x) near[i] = 0;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
    __syncthreads();
    const i64 from = first + dynamic_shared[0] * kArcs, to = min(from + kArcs, last);
    if (from >= last) break;
    i64 r = lower_bound(indptr, num_vertices + 1, from + 1) - 1;
    for (i64 a = from; a < to; ++a) {
      while (indptr[r + 1] <= a) ++r;
      const i64 behind = indptr[r + 1] - a - 1;
      if (behind <= kWarpCounters) {
        if ((a & (warps - 1)) != warp || !count_walks(lists, a, 0, 1, own)) continue;
        __syncwarp();
        total += take_pairs(own, behind, lane_id(), 32);
        __syncwarp();
      } else {
        __syncthreads();
        const bool any = count_walks(lists, a, warp, warps, all);
        __syncthreads();
        if (any) total += take_pairs(all, behind, threadIdx.x, blockDim.x);
        __syncthreads();
      }
    }
  }
  WideSum{total}.add_lanes_to(result);
}
