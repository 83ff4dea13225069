// Count the triangles of every arc; see longwall.kernels.cpu.local_counts.arc_triangles.
#include "common.cuh"

constexpr i64 kArcs = 64;  // that a warp takes at once

// A warp for each edge: the neighbours of its larger end, which has no higher degree, are searched for among those of
// its smaller end.
extern "C" __global__ void __launch_bounds__(256)
    count_arc_triangles(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 num_arcs,
                        u64* next, const u32* stop, u32* triangles) {
  const int lane = lane_id();
  for (;;) {
    i64 first = lane == 0 ? static_cast<i64>(atomicAdd(next, static_cast<u64>(kArcs))) : 0;
    first = __shfl_sync(kAll, first, 0);
    if (first >= num_arcs || stop_asked(stop)) return;
    const i64 last = min(first + kArcs, num_arcs);
    i64 v = lower_bound(indptr, num_vertices + 1, first + 1) - 1;
    for (i64 arc = first; arc < last; ++arc) {
      while (indptr[v + 1] <= arc) ++v;
      if (arc < split[v]) continue;
      const u32 u = indices[arc];
      const u32* row = indices + indptr[v];
      const int length = static_cast<int>(indptr[v + 1] - indptr[v]);
      const u32* other = indices + indptr[u];
      const int size = static_cast<int>(indptr[u + 1] - indptr[u]);
      u32 found = 0;
      for (int i = lane; i < size; i += 32) {
        const int at = lower_bound(row, length, other[i]);
        found += at < length && row[at] == other[i];
      }
      found = warp_sum(found);
      if (lane == 0) {
        triangles[arc] = found;
        triangles[indptr[u] + lower_bound(other, size, static_cast<u32>(v))] = found;
      }
    }
  }
}

// The largest sum of the numbers of a vertex' arcs.
extern "C" __global__ void __launch_bounds__(256)
    largest_row(const i64* indptr, i64 num_vertices, const u32* triangles, u64* most) {
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  for (i64 v = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); v < num_vertices; v += warps) {
    u64 found = 0;
    for (i64 arc = indptr[v] + lane_id(); arc < indptr[v + 1]; arc += 32) found += triangles[arc];
    found = warp_sum(found);
    if (lane_id() == 0) atomicMax(most, found);
  }
}
