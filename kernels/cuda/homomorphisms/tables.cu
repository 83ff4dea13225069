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

// Call visit(v, x, arc, back) for both arcs of every edge (v, x), v < x; a lane for each.
template <typename Visit>
DEVICE void for_edges(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, Visit visit) {
  const i64 num_arcs = indptr[num_vertices];
  for (i64 arc = 32 * warp_number() + lane_id(); arc < num_arcs; arc += 32 * num_warps()) {
    const i64 v = lower_bound(indptr, num_vertices + 1, arc + 1) - 1;
    if (arc < split[v]) continue;
    const i64 x = indices[arc], row = indptr[x];
    visit(v, x, arc, row + lower_bound(indices + row, indptr[x + 1] - row, static_cast<u32>(v)));
  }
}

// counts of both arcs of every edge (v, x) = factor * their sum, plus deg(v) + deg(x) - 1 with `walks`.
extern "C" __global__ void __launch_bounds__(256)
    join_arcs(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 factor, i64 walks,
              u64* counts) {
  for_edges(indptr, indices, split, num_vertices, [&](i64 v, i64 x, i64 arc, i64 back) {
    u64 sum = factor * (counts[arc] + counts[back]);
    if (walks) sum += indptr[v + 1] - indptr[v] + indptr[x + 1] - indptr[x] - 1;
    counts[arc] = sum;
    counts[back] = sum;
  });
}

// reverse[arc] = the arc back, for both arcs of every edge.
extern "C" __global__ void __launch_bounds__(256)
    list_reverse(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, u32* reverse) {
  for_edges(indptr, indices, split, num_vertices, [&](i64, i64, i64 arc, i64 back) {
    reverse[arc] = static_cast<u32>(back);
    reverse[back] = static_cast<u32>(arc);
  });
}
