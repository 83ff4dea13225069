// Which vertices the arcs of a range belong to.
#include "common.cuh"

// The vertex of arc `first`, and one past that of arc last - 1: out[2]. A warp.
extern "C" __global__ void __launch_bounds__(32)
    find_owners(const i64* indptr, i64 num_vertices, i64 first, i64 last, i64* out) {
  const i64 low = warp_lower_bound(indptr, num_vertices + 1, first + 1) - 1;
  const i64 high = warp_lower_bound(indptr, num_vertices + 1, last);
  if (lane_id() == 0) {
    out[0] = low;
    out[1] = high;
  }
}
