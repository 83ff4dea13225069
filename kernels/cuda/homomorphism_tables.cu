// Tables over vertices and arcs; a warp for each vertex.
#include "common.cuh"

// Value (u64, or double) and kModulus (0: 2^64)
#include "generated.cuh"

DEVICE double reduced(double value) { return value; }
DEVICE u64 reduced(u64 value) { return kModulus ? value % (kModulus ? kModulus : 1) : value; }

DEVICE i64 warp_number() { return static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); }
DEVICE i64 num_warps() { return static_cast<i64>(gridDim.x) * (blockDim.x >> 5); }

// out[v] = sum of arcs[v, x] * vertices[x] over the neighbours x of v; a null pointer stands for ones.
extern "C" __global__ void __launch_bounds__(256, 4)
    sum_neighbours(const i64* indptr, const u32* indices, i64 num_vertices, const Value* vertices, const Value* arcs,
                   Value* out) {
  for (i64 v = warp_number(); v < num_vertices; v += num_warps()) {
    Value sum = 0;
    for (i64 j = indptr[v] + lane_id(); j < indptr[v + 1]; j += 32) {
      const Value value = vertices ? vertices[indices[j]] : Value(1);
      sum += reduced(arcs ? arcs[j] * value : value);
    }
    sum = reduced(warp_sum(reduced(sum)));
    if (lane_id() == 0) out[v] = sum;
  }
}

// counts of both arcs of every edge (v, x) = factor * their sum, plus deg(v) + deg(x) - 1 with `walks`.
extern "C" __global__ void __launch_bounds__(256)
    join_arcs(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 factor, i64 walks,
              u64* counts) {
  for (i64 v = warp_number(); v < num_vertices; v += num_warps()) {
    const i64 begin = indptr[v], end = indptr[v + 1];
    for (i64 j = split[v] + lane_id(); j < end; j += 32) {
      const i64 row = indptr[indices[j]], row_end = indptr[indices[j] + 1];
      const i64 back = row + lower_bound(indices + row, row_end - row, static_cast<u32>(v));
      u64 sum = factor * (counts[j] + counts[back]);
      if (walks) sum += end - begin + row_end - row - 1;
      counts[j] = sum;
      counts[back] = sum;
    }
  }
}
