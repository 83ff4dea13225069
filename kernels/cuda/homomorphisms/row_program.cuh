// What row programs are, for the kernels that run them, and the products of their scalars.
#pragma once
#include "common.cuh"

struct RowOp {
  int code, target, source, weight;
};

// A dense vector: whether its numbers have 32 bits, and its place among those of the same width.
struct DenseVector {
  bool narrow;
  int place;
};

// Value (u64, or double), kModulus (0: 2^64), kNumOps, kOps, kNumLocal, kNumWide, kNumNarrow, kDense, kNumScalars, kNumProducts, kFactors,
// kProducts (padded with -1), kDenseFactors, kDenseProducts (dense vectors, padded with -1), kNumStored, kStored (product, table),
// kArcs (whether rows are those of arcs), kOnGraph (whether they are, and passes read the graph), kSymmetric,
// kOnesFirst (whether the first pass counts ones in 32 bits),
// kAcross (whether WEIGH_ACROSS occurs), kLanes (a power of two, at most 32: how many have a row without dense vectors);
// PER_OP (the specifiers of operations that long programs repeat: inlined, or functions); lists that are empty have one
// entry.
#include "generated.cuh"

// A number modulo kModulus, where that is not 0.
DEVICE double reduced(double value) { return value; }
DEVICE u64 reduced(u64 value) { return kModulus ? value % (kModulus ? kModulus : 1) : value; }

DEVICE double magnitude(double value) { return value; }
DEVICE double magnitude(u64 value) { return static_cast<double>(static_cast<i64>(value)); }

// NVRTC refuses a template that instantiates itself 200 deep, and programs have more operations. So the templates below
// split a range of operations into halves, down to a single one.

// Multiply the scalars of product P, reduced, and their magnitudes.
template <int P, int C = 0>
DEVICE void multiply_scalars(const Value* scalars, Value& product, double& estimate) {
  if constexpr (C < kFactors) {
    constexpr int scalar = kProducts[P][C];
    if constexpr (scalar >= 0) {
      product = reduced(product * reduced(scalars[scalar]));
      estimate *= magnitude(scalars[scalar]);
    }
    multiply_scalars<P, C + 1>(scalars, product, estimate);
  }
}

struct Sums {
  Value totals[kNumProducts ? kNumProducts : 1];
  double estimates[kNumProducts ? kNumProducts : 1];
};

// Add the products of row v to the sums, and store those that are tables.
template <int FIRST = 0, int LAST = kNumProducts>
DEVICE void add_products(const Value* scalars, i64 v, i64 num_rows, Value* tables, Sums& sums) {
  if constexpr (LAST - FIRST > 1) {
    add_products<FIRST, (FIRST + LAST) / 2>(scalars, v, num_rows, tables, sums);
    add_products<(FIRST + LAST) / 2, LAST>(scalars, v, num_rows, tables, sums);
  } else if constexpr (LAST > FIRST) {
    Value product = 1;
    double estimate = 1;
    multiply_scalars<FIRST>(scalars, product, estimate);
    sums.totals[FIRST] = reduced(sums.totals[FIRST] + product);
    sums.estimates[FIRST] += estimate;
    for (int s = 0; s < kNumStored; ++s)
      if (kStored[s][0] == FIRST) tables[kStored[s][1] * num_rows + v] = product;
  }
}
