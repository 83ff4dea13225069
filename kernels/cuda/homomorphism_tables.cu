// Tables over vertices and arcs, and the lists that they are made of; a warp for each vertex or arc.
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

// Common neighbours y of the ends of every arc (v, x). Without `common` their number is written to lengths[arc + 1];
// else the places of the arcs (v, y) are written to `common` from lengths[arc] on, ascending.
extern "C" __global__ void __launch_bounds__(256, 4)
    list_common(const i64* indptr, const u32* indices, i64 num_vertices, i64* lengths, u32* common, const u32* stop) {
  const i64 num_arcs = indptr[num_vertices];
  for (i64 arc = warp_number(); arc < num_arcs && !stop_asked(stop); arc += num_warps()) {
    const i64 v = lower_bound(indptr, num_vertices + 1, arc + 1) - 1;
    const i64 x = indices[arc];
    const i64 own = indptr[v], other = indptr[x];
    const int own_length = static_cast<int>(indptr[v + 1] - own), other_length = static_cast<int>(indptr[x + 1] - other);
    const bool from_own = own_length <= other_length;
    const u32* few = indices + (from_own ? own : other);
    const u32* many = indices + (from_own ? other : own);
    const int length = from_own ? own_length : other_length, many_length = from_own ? other_length : own_length;
    i64 at = common ? lengths[arc] : 0;
    for (int j = 0; j < length; j += 32) {
      const int i = j + lane_id();
      const int found = i < length ? lower_bound(many, many_length, few[i]) : many_length;
      const bool both = found < many_length && many[found] == few[i];
      const u32 hits = __ballot_sync(kAll, both);
      if (common && both) common[at + __popc(hits & lanes_before())] = static_cast<u32>(own + (from_own ? i : found));
      at += __popc(hits);
    }
    if (!common && lane_id() == 0) lengths[arc + 1] = at;
  }
}
