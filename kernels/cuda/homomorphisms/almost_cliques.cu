// Count cliques of five vertices less an edge: pairs of common neighbours of the triangles, each found at its largest
// vertex v; see longwall.kernels.cpu.homomorphisms.almost_cliques. A block for each vertex.
//
// Row i of a table says which of v's neighbours are adjacent to its smaller neighbour i; rows begin at odd words apart,
// so that lanes with a row each read different banks.
#include "common.cuh"

// Build the table of v, whose arcs begin at `own`, and count below it; each lane returns its part.
DEVICE u64 count_pairs(const i64* starts, const u32* common, i64 own, int smaller, int width, u32* table) {
  const int warp = warp_in_block(), warps = blockDim.x >> 5;
  for (i64 w = threadIdx.x; w < static_cast<i64>(smaller) * width; w += blockDim.x) table[w] = 0;
  __syncthreads();
  for (int i = warp; i < smaller; i += warps) {
    for (i64 at = starts[own + i] + lane_id(); at < starts[own + i + 1]; at += 32) {
      const u32 j = static_cast<u32>(common[at] - own);
      atomicOr(&table[i * width + (j >> 5)], 1u << (j & 31));
    }
  }
  __syncthreads();
  u64 total = 0;
  for (int i = warp; i < smaller; i += warps) {
    const u32* row = table + i * width;
    const i64 end = starts[own + i + 1];
    for (i64 at = starts[own + i] + lane_id(); at < end; at += 32) {
      const int j = static_cast<int>(common[at] - own);
      if (j >= i) break;  // lists ascend
      const u32* other = table + j * width;
      u32 found = 0;
      for (int w = 0; w < width; ++w) found += __popc(row[w] & other[w]);
      total += static_cast<u64>(found) * (found ? found - 1 : 0) / 2;
    }
    __syncwarp();
  }
  return total;
}

// Those of the vertices first to last - 1. store: u32[blocks][store_words], for tables without room in shared memory.
extern "C" __global__ void __launch_bounds__(256)
    count_almost_cliques(const i64* indptr, const i64* split, const i64* starts, const u32* common, i64 first, i64 last,
                         i64 words, u32* store, i64 store_words, u32* next, const u32* stop, u64* result) {
  WideSum sum;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
    __syncthreads();
    const i64 v = first + dynamic_shared[0];
    if (v >= last) break;
    const i64 own = indptr[v];
    const int smaller = static_cast<int>(split[v] - own);
    if (smaller < 2) continue;
    const int width = static_cast<int>((indptr[v + 1] - own + 31) >> 5) | 1;
    // The same code twice, so that the compiler knows which of the two memories it reads.
    u64 total;
    if (static_cast<i64>(smaller) * width <= words) {
      total = count_pairs(starts, common, own, smaller, width, dynamic_shared + 4);
    } else {
      total = count_pairs(starts, common, own, smaller, width, store + blockIdx.x * store_words);
    }
    sum.add(total);
  }
  sum.add_lanes_to(result);
}
