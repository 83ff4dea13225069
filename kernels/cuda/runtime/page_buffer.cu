// Copy pages of the adjacency to places of a buffer on the device.
#include "common.cuh"

// `what` is i64[2, number]: pages, and their places; a page has 2^bits arcs. So few threads, of so few registers, have
// room on a multiprocessor beside the blocks of kernels that count meanwhile; each has several reads under way.
extern "C" __global__ void __launch_bounds__(128, 16)
    copy_pages(const u32* indices, i64 num_arcs, const i64* what, i64 number, i64 bits, u32* buffer) {
  constexpr int kAtOnce = 4;
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x, arcs = i64(1) << bits, total = number << bits;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += kAtOnce * threads) {
    u32 values[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const i64 at = i + k * threads, from = at < total ? what[at >> bits] * arcs + (at & (arcs - 1)) : num_arcs;
      values[k] = from < num_arcs ? indices[from] : 0;
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const i64 at = i + k * threads;
      if (at < total) buffer[what[number + (at >> bits)] * arcs + (at & (arcs - 1))] = values[k];
    }
  }
}
