// Run a row program without dense vectors: every entry of a row is on its own, so a few lanes have a row, and local
// vectors are registers. See longwall.kernels.cpu.homomorphisms.rows.
//
#include "homomorphisms/row_program.cuh"

constexpr int kLocals = kNumLocal ? kNumLocal : 1, kScalars = kNumScalars ? kNumScalars : 1;

struct FlatRows {
  const i64* indptr;
  const u32* indices;
  i64 num_rows;
  Value* tables;      // Value[number, num_rows]
  Value* arc_tables;  // Value[number, num_arcs]
  i64 num_arcs;
  const u32* reverse;
  const i64* common_indptr;
  const u32* common;

  // The operations on entry `at` of a row; `across` is that of the same vertex in the row of the reversed arc.
  template <int FIRST = 0, int LAST = kNumOps>
  DEVICE void visit(i64 at, i64 across, Value* local, Value* scalars) const {
    if constexpr (LAST - FIRST > 1) {
      visit<FIRST, (FIRST + LAST) / 2>(at, across, local, scalars);
      visit<(FIRST + LAST) / 2, LAST>(at, across, local, scalars);
    } else if constexpr (LAST > FIRST) {
      constexpr RowOp op = kOps[FIRST];
      constexpr int t = op.target, s = op.source;
      if constexpr (op.code == ONES) {
        local[t] = 1;
      } else if constexpr (op.code == MULTIPLY) {
        local[t] = reduced(local[t] * local[s]);
      } else if constexpr (op.code == WEIGH) {
        local[t] = reduced(local[t] * tables[s * num_rows + indices[at]]);
      } else if constexpr (op.code == WEIGH_ARC) {
        local[t] = reduced(local[t] * arc_tables[s * num_arcs + at]);
      } else if constexpr (op.code == WEIGH_ACROSS) {
        local[t] = reduced(local[t] * arc_tables[s * num_arcs + common[across]]);
      } else if constexpr (op.code == STORE_LOCAL) {
        arc_tables[t * num_arcs + at] = local[s];
      } else if constexpr (op.code == SUM) {
        scalars[t] += local[s];
      } else {
        static_assert(op.code == LOAD, "an operation on dense vectors");
      }
    }
  }

  // Add up what the lanes of a row have, and load what stands at the row.
  template <int FIRST = 0, int LAST = kNumOps>
  DEVICE void join(i64 v, bool in, Value* scalars) const {
    if constexpr (LAST - FIRST > 1) {
      join<FIRST, (FIRST + LAST) / 2>(v, in, scalars);
      join<(FIRST + LAST) / 2, LAST>(v, in, scalars);
    } else if constexpr (LAST > FIRST) {
      constexpr RowOp op = kOps[FIRST];
      if constexpr (op.code == SUM) {
        Value sum = reduced(scalars[op.target]);
        for (int distance = kLanes / 2; distance; distance >>= 1) sum += __shfl_xor_sync(kAll, sum, distance);
        scalars[op.target] = reduced(sum);
      } else if constexpr (op.code == LOAD) {
        scalars[op.target] = in ? tables[op.source * num_rows + v] : Value(0);
      }
    }
  }
};

// Add the sums of a warp to those of its block.
template <int FIRST = 0, int LAST = kNumProducts>
DEVICE void join_warps(const Sums& sums, Sums* own) {
  if constexpr (LAST - FIRST > 1) {
    join_warps<FIRST, (FIRST + LAST) / 2>(sums, own);
    join_warps<(FIRST + LAST) / 2, LAST>(sums, own);
  } else if constexpr (LAST > FIRST) {
    const Value total = reduced(warp_sum(sums.totals[FIRST]));
    const double estimate = warp_sum(sums.estimates[FIRST]);
    if (lane_id() == 0) {
      atomicAdd(&own->totals[FIRST], total);
      atomicAdd(&own->estimates[FIRST], estimate);
    }
  }
}

// Add the sums of all threads to the totals, first those of a block in shared memory: fewer warps add to the same place.
DEVICE void flush(const Sums& sums, Value* totals, double* estimates) {
  Sums* own = reinterpret_cast<Sums*>(dynamic_shared);
  for (int p = threadIdx.x; p < kNumProducts; p += blockDim.x) own->totals[p] = 0, own->estimates[p] = 0;
  __syncthreads();
  join_warps(sums, own);
  __syncthreads();
  for (int p = threadIdx.x; p < kNumProducts; p += blockDim.x) {
    atomicAdd(&totals[p], own->totals[p]);
    atomicAdd(&estimates[p], own->estimates[p]);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    run_flat_rows(const i64* indptr, const u32* indices, i64 num_rows, i64 first, i64 last, Value* tables,
                  Value* arc_tables, i64 num_arcs, const u32* reverse, const i64* common_indptr, const u32* common,
                  const u32* stop, Value* totals, double* estimates) {
  constexpr int rows = 32 / kLanes;
  const FlatRows run = {indptr, indices, num_rows, tables, arc_tables, num_arcs, reverse, common_indptr, common};
  const int own = lane_id() / kLanes, lane = lane_id() % kLanes;
  const i64 step = static_cast<i64>(gridDim.x) * (blockDim.x >> 5) * rows;
  Sums sums = {};
  for (i64 base = first + (static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block()) * rows;
       base < last && !stop_asked(stop); base += step) {
    const i64 v = base + own;
    const bool in = v < last;
    Value scalars[kScalars] = {};
    if (kNumLocal && in) {
      const i64 begin = indptr[v], end = indptr[v + 1];
      // The lists of an arc and its reverse have the same vertices.
      const i64 shift = kAcross ? common_indptr[reverse[v]] - begin : 0;
      for (i64 at = begin + lane; at < end; at += kLanes) {
        Value local[kLocals];
        run.visit(at, at + shift, local, scalars);
      }
    }
    __syncwarp();
    run.join(v, in, scalars);
    if (in && lane == 0) add_products(scalars, v, num_rows, tables, sums);
  }
  flush(sums, totals, estimates);
}
