// Triangles, cliques of 4 vertices and cycles of 4 vertices of every edge: each is found once, as in
// longwall.kernels.cpu.local_counts.edges, and added to the counts of its edges. A block for each vertex.
#include "common.cuh"

struct Edges {
  const i64* indptr;
  const u32* indices;
  const i64* split;
  const i64* edges;  // the number of each vertex' first edge to a smaller one
  u64 first_edge, num_counts;
  u64* counts;

  // Add to the count of the edge of a vertex with the neighbour at a place of its row; others may have no place.
  DEVICE void add(u32 v, i64 place, u64 number) const {
    const u64 at = static_cast<u64>(edges[v] + place) - first_edge;
    if (number && at < num_counts) atomicAdd(&counts[at], number);
  }

  DEVICE int out_degree(u32 v) const { return static_cast<int>(split[v] - indptr[v]); }
};

// The next vertex of the block; false where there is none left.
DEVICE bool next_vertex(u32* next, const u32* stop, i64 first, i64 last, i64* v) {
  __syncthreads();
  if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
  __syncthreads();
  *v = first + dynamic_shared[0];
  return dynamic_shared[0] != kNoVertex && *v < last;
}

// Call visit(k, i, slot) for every edge between out-neighbours of x: the one at place k of x' row has that at place
// `slot` of it at place i of its own.
template <typename Visit>
DEVICE void for_each_inner(const Edges& g, i64 x, Visit visit) {
  const u32* row = g.indices + g.indptr[x];
  const int size = g.out_degree(static_cast<u32>(x)), warps = static_cast<int>(blockDim.x >> 5);
  for (int k = warp_in_block(); k < size; k += warps) {
    const u32 a = row[k];
    const u32* own = g.indices + g.indptr[a];
    const int length = g.out_degree(a);
    for (int i = lane_id(); i < length; i += 32) {
      const int slot = lower_bound(row, k, own[i]);  // smaller than a, and so before it
      if (slot < k && row[slot] == own[i]) visit(k, i, slot);
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
    add_triangles(const i64* indptr, const u32* indices, const i64* split, const i64* edges, i64 first, i64 last,
                  u32* store, i64 words, u32* next, const u32* stop, u64 first_edge, u64 num_counts, u64* counts) {
  const Edges g = {indptr, indices, split, edges, first_edge, num_counts, counts};
  i64 x;
  while (next_vertex(next, stop, first, last, &x)) {
    const u32 v = static_cast<u32>(x);
    for_each_inner(g, x, [&](int k, int i, int slot) {
      g.add(indices[indptr[x] + k], i, 1);
      g.add(v, k, 1);
      g.add(v, slot, 1);
    });
  }
}

extern "C" __global__ void __launch_bounds__(256)
    add_cliques(const i64* indptr, const u32* indices, const i64* split, const i64* edges, i64 first, i64 last,
                u32* store, i64 words, u32* next, const u32* stop, u64 first_edge, u64 num_counts, u64* counts) {
  const Edges g = {indptr, indices, split, edges, first_edge, num_counts, counts};
  i64 x;
  while (next_vertex(next, stop, first, last, &x)) {
    const u32 v = static_cast<u32>(x);
    const int size = g.out_degree(v);
    if (size < 3) continue;
    const int width = (size + 31) >> 5;
    u32* sums = store + blockIdx.x * words;  // fewer than 2^32: there are at most sqrt(2m) out-neighbours
    u32* table = sums + size;
    for (int i = threadIdx.x; i < size * (width + 1); i += blockDim.x) sums[i] = 0;
    __syncthreads();
    for_each_inner(g, x, [&](int k, int i, int slot) {
      atomicOr(&table[k * width + (slot >> 5)], 1u << (slot & 31));
      atomicOr(&table[slot * width + (k >> 5)], 1u << (k & 31));
    });
    __syncthreads();
    // Two that are adjacent have as many common neighbours as there are cliques with both.
    for_each_inner(g, x, [&](int k, int i, int slot) {
      u32 found = 0;
      for (int w = 0; w < width; ++w) found += __popc(table[k * width + w] & table[slot * width + w]);
      if (!found) return;
      g.add(indices[indptr[x] + k], i, found);
      atomicAdd(&sums[k], found);
      atomicAdd(&sums[slot], found);
    });
    __syncthreads();
    for (int k = threadIdx.x; k < size; k += blockDim.x) g.add(v, k, sums[k] >> 1);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    add_cycles(const i64* indptr, const u32* indices, const i64* split, const i64* edges, i64 first, i64 last,
               u32* store, i64 words, u32* next, const u32* stop, u64 first_edge, u64 num_counts, u64* counts) {
  const Edges g = {indptr, indices, split, edges, first_edge, num_counts, counts};
  u32* wedges = store + blockIdx.x * words;
  const int warps = static_cast<int>(blockDim.x >> 5), lane = lane_id();
  i64 v;
  while (next_vertex(next, stop, first, last, &v)) {
    const i64 begin = split[v], end = indptr[v + 1];
    for (int pass = 0; pass < 3; ++pass) {  // count the wedges by their ends, look at them, clear
      for (i64 j = begin + warp_in_block(); j < end; j += warps) {
        const u32 x = indices[j];
        const u32* row = indices + indptr[x];
        const int length = static_cast<int>(indptr[x + 1] - indptr[x]);
        const int beyond = warp_lower_bound(row, length, static_cast<u32>(v)) + 1;  // v itself is in the list
        u64 own = 0;
        for (int i = beyond + lane; i < length; i += 32) {
          const u32 y = row[i];
          if (pass == 0) {
            atomicAdd(&wedges[y], 1u);
          } else if (pass == 2) {
            wedges[y] = 0;
          } else if (wedges[y] > 1) {
            const u64 others = wedges[y] - 1;
            own += others;
            if (y < x) {
              g.add(x, i, others);
            } else {
              g.add(y, lower_bound(indices + indptr[y], g.out_degree(y), x), others);
            }
          }
        }
        if (pass == 1) {
          own = warp_sum(own);
          if (lane == 0) g.add(x, beyond - 1, own);
        }
      }
      __syncthreads();
    }
  }
}
