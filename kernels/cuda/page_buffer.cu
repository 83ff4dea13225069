// Copy pages of the adjacency to places of a buffer on the device.
#include "common.cuh"

// `what` is i64[2, number]: pages, and their places; a page has 2^bits arcs.
extern "C" __global__ void __launch_bounds__(256)
    copy_pages(const u32* indices, i64 num_arcs, const i64* what, i64 number, i64 bits, u32* buffer) {
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x, arcs = i64(1) << bits;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < number << bits; i += threads) {
    const i64 one = i >> bits, within = i & (arcs - 1), from = what[one] * arcs + within;
    if (from < num_arcs) buffer[what[number + one] * arcs + within] = indices[from];
  }
}
