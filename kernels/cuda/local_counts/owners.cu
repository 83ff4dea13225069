// Find the vertices that own the arcs of a range.
#include "common.cuh"

// Write the owner of arc `first`, and one past the owner of arc last - 1: out[2]. One warp.
extern "C" __global__ void __launch_bounds__(32)
    find_owners(const i64* indptr, i64 num_vertices, i64 first, i64 last, i64* out) {
  const i64 low = warp_lower_bound(indptr, num_vertices + 1, first + 1) - 1;
  const i64 high = warp_lower_bound(indptr, num_vertices + 1, last);
  if (lane_id() == 0) {
    out[0] = low;
    out[1] = high;
  }
}
