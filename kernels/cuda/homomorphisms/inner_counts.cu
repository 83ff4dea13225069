// Count homomorphisms of a small pattern to the common neighbours of every edge's ends, at both of its arcs; see
// longwall.kernels.cpu.homomorphisms.inner_counts. A block for each edge, at the arc of its larger end.
//
// Row i of a table says which common neighbours are adjacent to number i; rows begin at odd words apart, so that lanes
// with a row each read different banks.
#include "common.cuh"

struct Lists {
  const i64* starts;
  const u32* common;
};

DEVICE u32 count_bits(const u32* row, const u32* other, int width) {
  u32 found = 0;
  for (int w = 0; w < width; ++w) found += __popc(row[w] & other[w]);
  return found;
}

// Build the table of an arc, and count below it; each lane returns its part.
DEVICE u64 count_pairs(const Lists& lists, i64 arc, int inner, u32* table) {
  const int warp = warp_in_block(), warps = blockDim.x >> 5;
  const u32* own = lists.common + lists.starts[arc];
  const int size = static_cast<int>(lists.starts[arc + 1] - lists.starts[arc]);
  const int width = (size + 31) >> 5 | 1;
  for (i64 w = threadIdx.x; w < static_cast<i64>(size) * width; w += blockDim.x) table[w] = 0;
  __syncthreads();
  for (int i = warp; i < size; i += warps) {
    u32* row = table + static_cast<i64>(i) * width;
    const i64 end = lists.starts[own[i] + 1];
    for (i64 at = lists.starts[own[i]] + lane_id(); at < end; at += 32) {
      const u32 place = lists.common[at];
      const int slot = lower_bound(own, size, place);
      if (slot < size && own[slot] == place) atomicOr(&row[slot >> 5], 1u << (slot & 31));
    }
  }
  __syncthreads();
  u64 total = 0;
  for (int i = warp; i < size; i += warps) {
    const u32* row = table + static_cast<i64>(i) * width;
    const u64 degree = count_bits(row, row, width);
    if (!degree) continue;
    for (int j = lane_id(); j <= i; j += 32) {
      if (inner != CYCLES && !(row[j >> 5] >> (j & 31) & 1)) continue;
      const u32* other = table + static_cast<i64>(j) * width;
      const u64 both = count_bits(row, other, width);
      // Both orders of i and j.
      if (inner == TRIANGLES) {
        total += 2 * both;
      } else if (inner == PAWS) {
        total += both * (degree + count_bits(other, other, width));
      } else {
        total += (i == j ? 1 : 2) * both * both;
      }
    }
  }
  return total;
}

// store: u32[blocks][store_words], for tables that have no room in the `words` of shared memory.
extern "C" __global__ void __launch_bounds__(128)
    count_inner(const i64* indptr, const i64* split, i64 num_vertices, i64 num_arcs, const i64* starts,
                const u32* common, const u32* reverse, i64 inner, i64 words, u32* store, i64 store_words, u64* next,
                const u32* stop, u64* out) {
  u64* control = reinterpret_cast<u64*>(dynamic_shared);  // the arc, and the sum of its warps
  const Lists lists{starts, common};
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) {
      control[0] = load_volatile(stop) ? num_arcs : atomicAdd(next, 1ull);
      control[1] = 0;
    }
    __syncthreads();
    const i64 arc = static_cast<i64>(control[0]);
    if (arc >= num_arcs) break;
    const i64 size = starts[arc + 1] - starts[arc];
    if (size < 2 || arc >= split[lower_bound(indptr, num_vertices + 1, arc + 1) - 1]) continue;
    u64 part;
    // The same code twice, so that the compiler knows which of the two memories it reads.
    if (size * ((size + 31) >> 5 | 1) <= words) {
      part = count_pairs(lists, arc, static_cast<int>(inner), dynamic_shared + 4);
    } else {
      part = count_pairs(lists, arc, static_cast<int>(inner), store + blockIdx.x * store_words);
    }
    part = warp_sum(part);
    if (lane_id() == 0 && part) atomicAdd(&control[1], part);
    __syncthreads();
    if (threadIdx.x == 0) out[arc] = out[reverse[arc]] = control[1];
  }
}
