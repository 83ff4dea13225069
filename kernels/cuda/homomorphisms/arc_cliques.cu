// Count the cliques of four vertices of every edge, at an arc of it each; a block for each vertex v, which is the
// largest one of the cliques. See longwall.kernels.cpu.homomorphisms.tables.
//
// Among the out-neighbours of v (those with a smaller id) two that are adjacent are in as many cliques with v as they
// have common neighbours: rows of a bitmap table.
#include "row_bitmap.cuh"

// Call visit(k, arc, slot) for every arc between out-neighbours of v, from that at place k of the row to that at place
// `slot`, which is smaller.
template <typename Visit>
DEVICE void for_inner_arcs(const i64* indptr, const u32* indices, const i64* split, const u32* row, int size,
                           const Bitmap<true>& place, Visit visit) {
  const int warp = warp_in_block(), warps = blockDim.x >> 5, lane = lane_id();
  for (int base = warp; base < size; base += 32 * warps) {
    // The lanes fetch the next rows' bounds together.
    const int k = base + lane * warps;
    const u32 a = k < size ? row[k] : 0;
    const i64 own_begin = k < size ? indptr[a] : 0, own_end = k < size ? split[a] : 0;
    const int active = min((size - base + warps - 1) / warps, 32);
    for (int i = 0; i < active; ++i) {
      const i64 begin = __shfl_sync(kAll, own_begin, i), end = __shfl_sync(kAll, own_end, i);
      for (i64 arc = begin + lane; arc < end; arc += 32) {
        const int slot = place(indices[arc]);
        if (slot >= 0) visit(base + i * warps, arc, slot);
      }
      __syncwarp();
    }
  }
}

// store: u32[blocks][store_words], for sums and tables without room in shared memory, of which a block has `words` for
// the bitmap of v's out-neighbours, twice, and `room` for these.
extern "C" __global__ void __launch_bounds__(256)
    count_arc_cliques(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 words, i64 capacity,
                      u32* store, i64 store_words, u32* next, const u32* stop, u64* counts) {
  u32 *bits = dynamic_shared + 4, *before = bits + words, *own_room = before + words;
  for (i64 w = threadIdx.x; w < words; w += blockDim.x) bits[w] = 0;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
    __syncthreads();
    const i64 v = dynamic_shared[0];
    if (v >= num_vertices) break;
    const i64 begin = indptr[v];
    const int size = static_cast<int>(split[v] - begin);
    if (size < 3) continue;
    const u32* row = indices + begin;
    const Bitmap<true> place = fill_bitmap<true>(Row{row, size}, words, bits, before);
    const int width = (size + 31) >> 5;
    u32* sums = static_cast<i64>(size) * (width + 1) <= capacity ? own_room : store + blockIdx.x * store_words;
    u32* table = sums + size;
    for (int i = threadIdx.x; i < size * (width + 1); i += blockDim.x) sums[i] = 0;
    __syncthreads();
    for_inner_arcs(indptr, indices, split, row, size, place, [&](int k, i64, int slot) {
      atomicOr(&table[k * width + (slot >> 5)], 1u << (slot & 31));
      atomicOr(&table[slot * width + (k >> 5)], 1u << (k & 31));
    });
    __syncthreads();
    for_inner_arcs(indptr, indices, split, row, size, place, [&](int k, i64 arc, int slot) {
      u32 found = 0;
      for (int w = 0; w < width; ++w) found += __popc(table[k * width + w] & table[slot * width + w]);
      if (!found) return;
      atomicAdd(&counts[arc], static_cast<u64>(found));
      atomicAdd(&sums[k], found);
      atomicAdd(&sums[slot], found);
    });
    __syncthreads();
    for (int k = threadIdx.x; k < size; k += blockDim.x)
      if (sums[k]) atomicAdd(&counts[begin + k], static_cast<u64>(sums[k] >> 1));
    clear_bitmap(place, bits);
  }
}
