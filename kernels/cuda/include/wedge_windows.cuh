// Wedges v - x - y with x, y > v whose ends y lie in a window of vertices, so that their counters fit shared memory.
#pragma once
#include "common.cuh"

// Call visit(arc) for the arcs (x, y) of wedges with low <= y < high, each lane for its own, and end(own) after those of
// the arc (v, x), for the whole warp; low > v. A block's warps share out the arcs of v.
template <typename Graph, typename Visit, typename End>
DEVICE void for_wedges_between(const Graph& graph, i64 v, u32 low, u32 high, Visit visit, End end) {
  const int lane = lane_id(), warps = blockDim.x >> 5;
  const i64 last = graph.indptr[v + 1];
  for (i64 base = graph.split[v] + warp_in_block(); base < last; base += 32 * warps) {
    // The lanes search for the next rows' bounds together.
    const i64 own = base + static_cast<i64>(lane) * warps;
    i64 from = 0, to = 0;
    if (own < last) {
      const u32 x = graph.indices[own];
      from = graph.indptr[x];
      to = graph.indptr[x + 1];
      if (graph.indices[to - 1] < low) {
        from = to;
      } else {
        from += lower_bound(graph.indices + from, to - from, low);
        if (graph.indices[to - 1] >= high) to = from + lower_bound(graph.indices + from, to - from, high);
      }
    }
    for (u32 todo = __ballot_sync(kAll, from < to); todo; todo &= todo - 1) {
      const int i = __ffs(todo) - 1;
      const i64 row_end = __shfl_sync(kAll, to, i);
      // Several reads are under way at a time.
#pragma unroll 4
      for (i64 arc = __shfl_sync(kAll, from, i) + lane; arc < row_end; arc += 32) visit(arc);
      __syncwarp();
      end(base + static_cast<i64>(i) * warps);
    }
  }
}
