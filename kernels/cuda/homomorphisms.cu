// Run a row program: homomorphism counts by dynamic programming over each vertex's row; a block per vertex.
//
// Local vectors have an entry per neighbour of v, dense ones an entry per vertex. Ids are degree ranks, so most of
// what is read of a dense vector is its beginning: that part is in shared memory, the rest in the block's workspace.
#include "common.cuh"

enum Op {
  ONES, PULL, SCATTER, MULTIPLY, WEIGH, PUSH, COPY_DENSE, MULTIPLY_DENSE, WEIGH_DENSE, WIDEN, SUM, SUM_DENSE
};

struct RowOp {
  int code, target, source;
};

// Value (u64, modulo 2^64, or double), kNumOps, kOps, kNumLocal, kNumDense, kNumScalars, kNumProducts, kFactors,
// kProducts (padded with -1)
#include "generated.cuh"

#define CONSTANT __host__ __device__ constexpr

CONSTANT bool has_wide_pass() {
  for (int o = 0; o < kNumOps; ++o)
    if (kOps[o].code == WIDEN) return true;
  return false;
}

CONSTANT int first_push() {
  int o = 0;
  while (o < kNumOps && kOps[o].code != PUSH) ++o;
  return o;
}

// The local vector that a dense one was scattered from, -1 for other dense vectors.
CONSTANT int scattered_from(int dense) {
  for (int o = 0; o < kNumOps; ++o)
    if (kOps[o].code == SCATTER && kOps[o].target == dense) return kOps[o].source;
  return -1;
}

constexpr bool kWide = has_wide_pass();

DEVICE double magnitude(double value) { return value; }
DEVICE double magnitude(u64 value) { return static_cast<double>(static_cast<i64>(value)); }

struct RowRunner {
  const i64* indptr;
  const u32* indices;
  i64 num_vertices;
  const Value* weights;  // Value[num_weights, num_vertices]
  Value* local;          // this block's Value[kNumLocal, max_degree]
  i64 max_degree;
  Value *near, *far;  // dense vectors: of the first `window` vertices, and of the others
  i64 window;
  Value* scalars;
  u32* reached;  // the vertices within two steps of v
  u32* bitmap;   // the same as bits; all zero between rows
  u32* num_reached;

  i64 begin;
  int degree;
  const u32* row;

  DEVICE Value& dense(int vector, u32 vertex) const {
    return vertex < window ? near[vector * window + vertex] : far[vector * num_vertices + vertex];
  }

  DEVICE i64 reached_end() const { return kWide ? num_vertices : *num_reached; }
  DEVICE u32 reached_at(i64 r) const { return kWide ? static_cast<u32>(r) : reached[r]; }

  template <typename Visit>
  DEVICE void for_neighbours(Visit visit) const {
    for (int i = threadIdx.x; i < degree; i += blockDim.x) visit(i);
  }

  template <typename Visit>
  DEVICE void for_reached(Visit visit) const {
    for (i64 r = threadIdx.x; r < reached_end(); r += blockDim.x) visit(reached_at(r));
  }

  // Call visit(i, z) for the neighbours z of neighbour i of v, a warp for each i.
  template <typename Visit>
  DEVICE void for_second_neighbours(Visit visit) const {
    for (int i = warp_in_block(); i < degree; i += blockDim.x >> 5) {
      const u32 x = row[i];
      for (i64 j = indptr[x] + lane_id(); j < indptr[x + 1]; j += 32) visit(i, indices[j]);
    }
  }

  template <int S>
  DEVICE void add_scalar(Value sum) {
    sum = warp_sum(sum);
    if (lane_id() == 0) atomicAdd(&scalars[S], sum);
  }

  // local[T][i] = sum of dense[D] over the neighbours of neighbour i.
  template <int T, int D>
  DEVICE void pull() {
    constexpr int from = scattered_from(D);
    for (int i = warp_in_block(); i < degree; i += blockDim.x >> 5) {
      const u32 x = row[i];
      const i64 first = indptr[x];
      const int length = static_cast<int>(indptr[x + 1] - first);
      Value sum = 0;
      if (from >= 0 && degree < length >> 3) {
        // Only common neighbours of x and v count: look up the few of v among the many of x.
        for (int j = lane_id(); j < degree; j += 32) {
          const int at = lower_bound(indices + first, length, row[j]);
          if (at < length && indices[first + at] == row[j]) sum += local[(from < 0 ? 0 : from) * max_degree + j];
        }
      } else {
        for (int j = lane_id(); j < length; j += 32) sum += dense(D, indices[first + j]);
      }
      sum = warp_sum(sum);
      if (lane_id() == 0) local[T * max_degree + i] = sum;
    }
  }

  // List the vertices within two steps of v.
  DEVICE void reach() {
    if (threadIdx.x == 0) *num_reached = 0;
    __syncthreads();
    for_second_neighbours([&](int, u32 z) {
      const u32 bit = 1u << (z & 31);
      if (load_volatile(&bitmap[z >> 5]) & bit) return;
      if (!(atomicOr(&bitmap[z >> 5], bit) & bit)) reached[atomicAdd(num_reached, 1u)] = z;
    });
    __syncthreads();
  }

  template <int O = 0>
  DEVICE void run_ops() {
    if constexpr (O < kNumOps) {
      constexpr RowOp op = kOps[O];
      constexpr int t = op.target, s = op.source;
      if constexpr (O == first_push() && !kWide) reach();
      if constexpr (op.code == ONES) {
        for_neighbours([&](int i) { local[t * max_degree + i] = 1; });
      } else if constexpr (op.code == PULL) {
        pull<t, s>();
      } else if constexpr (op.code == SCATTER) {
        for_neighbours([&](int i) { dense(t, row[i]) = local[s * max_degree + i]; });
      } else if constexpr (op.code == MULTIPLY) {
        for_neighbours([&](int i) { local[t * max_degree + i] *= local[s * max_degree + i]; });
      } else if constexpr (op.code == WEIGH) {
        for_neighbours([&](int i) { local[t * max_degree + i] *= weights[s * num_vertices + row[i]]; });
      } else if constexpr (op.code == PUSH) {
        for_second_neighbours([&](int i, u32 z) {
          const Value amount = local[s * max_degree + i];
          if (z < window) {
            atomicAdd(&near[t * window + z], amount);
          } else {
            atomicAdd(&far[t * num_vertices + z], amount);
          }
        });
      } else if constexpr (op.code == COPY_DENSE) {
        for_reached([&](u32 z) { dense(t, z) = dense(s, z); });
      } else if constexpr (op.code == MULTIPLY_DENSE) {
        for_reached([&](u32 z) { dense(t, z) *= dense(s, z); });
      } else if constexpr (op.code == WEIGH_DENSE) {
        for_reached([&](u32 z) { dense(t, z) *= weights[s * num_vertices + z]; });
      } else if constexpr (op.code == WIDEN) {
        for (i64 z = warp_in_block(); z < num_vertices; z += blockDim.x >> 5) {
          Value sum = 0;
          for (i64 j = indptr[z] + lane_id(); j < indptr[z + 1]; j += 32) sum += dense(s, indices[j]);
          sum = warp_sum(sum);
          if (lane_id() == 0) dense(t, static_cast<u32>(z)) = sum;
        }
      } else if constexpr (op.code == SUM) {
        Value sum = 0;
        for_neighbours([&](int i) { sum += local[s * max_degree + i]; });
        add_scalar<t>(sum);
      } else {
        Value sum = 0;
        for_reached([&](u32 z) { sum += dense(s, z); });
        add_scalar<t>(sum);
      }
      __syncthreads();
      run_ops<O + 1>();
    }
  }

  template <int O = 0>
  DEVICE void clear() {
    if constexpr (O < kNumOps) {
      constexpr RowOp op = kOps[O];
      if constexpr (op.code == SCATTER) {
        for_neighbours([&](int i) { dense(op.target, row[i]) = 0; });
      } else if constexpr (op.code == PUSH || op.code == COPY_DENSE || op.code == WIDEN) {
        for_reached([&](u32 z) { dense(op.target, z) = 0; });
      }
      clear<O + 1>();
    }
  }

  template <int P, int C = 0>
  DEVICE void multiply(Value& product, double& estimate) const {
    if constexpr (C < kFactors) {
      constexpr int scalar = kProducts[P][C];
      if constexpr (scalar >= 0) {
        product *= scalars[scalar];
        estimate *= magnitude(scalars[scalar]);
      }
      multiply<P, C + 1>(product, estimate);
    }
  }

  template <int P = 0>
  DEVICE void add_products(Value* totals, double* estimates) const {
    if constexpr (P < kNumProducts) {
      Value product = 1;
      double estimate = 1;
      multiply<P>(product, estimate);
      atomicAdd(&totals[P], product);
      atomicAdd(&estimates[P], estimate);
      add_products<P + 1>(totals, estimates);
    }
  }
};

extern "C" __global__ void __launch_bounds__(1024, 1)
    run_rows(const i64* indptr, const u32* indices, i64 num_vertices, i64 first, i64 last, const Value* weights,
             Value* local, i64 max_degree, Value* far, i64 window, u32* reached, u32* bitmaps, i64 bitmap_words,
             u32* next, const u32* stop, Value* totals, double* estimates) {
  constexpr int control_words = 4;
  const i64 block = blockIdx.x;
  RowRunner run;
  run.indptr = indptr;
  run.indices = indices;
  run.num_vertices = num_vertices;
  run.weights = weights;
  run.local = local + block * kNumLocal * max_degree;
  run.max_degree = max_degree;
  run.scalars = reinterpret_cast<Value*>(dynamic_shared + control_words);
  run.near = run.scalars + kNumScalars;
  run.far = far + (window < num_vertices ? block * kNumDense * num_vertices : 0);
  run.window = window;
  run.reached = reached + (kWide ? 0 : block * num_vertices);
  // A null pointer: the bitmap is in shared memory.
  u32* shared_bitmap = reinterpret_cast<u32*>(run.near + kNumDense * window);
  run.bitmap = bitmaps ? bitmaps + block * bitmap_words : shared_bitmap;
  run.num_reached = dynamic_shared + 1;
  for (i64 i = threadIdx.x; i < kNumDense * window; i += blockDim.x) run.near[i] = 0;
  for (i64 i = threadIdx.x; i < bitmap_words; i += blockDim.x) run.bitmap[i] = 0;
  for (;;) {
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
    for (int i = threadIdx.x; i < kNumScalars; i += blockDim.x) run.scalars[i] = 0;
    __syncthreads();
    const i64 v = first + dynamic_shared[0];
    if (v >= last) break;
    run.begin = indptr[v];
    run.degree = static_cast<int>(indptr[v + 1] - run.begin);
    run.row = indices + run.begin;
    run.run_ops();
    if (threadIdx.x == 0) run.add_products(totals, estimates);
    run.clear();
    if constexpr (!kWide && first_push() < kNumOps) {
      run.for_reached([&](u32 z) { run.bitmap[z >> 5] = 0; });
    }
    __syncthreads();
  }
}

// out[x] = sum of `values` over the neighbours of x; a warp each.
extern "C" __global__ void __launch_bounds__(256, 4)
    neighbour_sums(const i64* indptr, const u32* indices, i64 num_vertices, const Value* values, Value* out) {
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  for (i64 x = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); x < num_vertices; x += warps) {
    Value sum = 0;
    for (i64 j = indptr[x] + lane_id(); j < indptr[x + 1]; j += 32) sum += values[indices[j]];
    sum = warp_sum(sum);
    if (lane_id() == 0) out[x] = sum;
  }
}
