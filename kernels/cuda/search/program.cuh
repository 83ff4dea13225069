// A search program as compile-time constants; the fields are those of longwall.kernels.interface.search_program.
#pragma once
#include "common.cuh"

struct SetOp {
  int depth, kind, source, adjacent;
  u64 below, above;
  int label;
  bool required, size_only;
};

struct Level {
  int candidates;
  u64 below, above, distinct;
  int label, degree;
};

struct Block {
  int candidates;
  u64 below, above;
};

struct Member {
  int block, depth;
  u64 mask;
};

#include "generated.cuh"

#define CONSTANT __host__ __device__ constexpr

// The first set that runs at a depth.
CONSTANT int first_set(int depth) {
  int s = 0;
  while (s < kNumSets && kSets[s].depth < depth) ++s;
  return s;
}

// Whether a set reads a slice of a row: the neighbours that have the label of number `label` (of rows laid out by label).
CONSTANT bool in_slice(int s) { return kSliceStride > 0 && kSets[s].kind != LABELLED && kSets[s].label >= 0; }

// The emitted set (-1: none) is emitted element by element, never stored.
CONSTANT bool stored(int s) { return kSets[s].kind != ADJACENCY && !kSets[s].size_only && s != kEmitted; }

// Whether the elements of a set are adjacent to a matched vertex and smaller: no more than the out-degree.
CONSTANT bool oriented(int s) {
  for (int t = s; t >= 0; t = kSets[t].source)
    if (kSets[t].kind != SUBTRACT && (kSets[s].below >> kSets[t].adjacent & 1)) return true;
  return false;
}

// Number of stored sets before set s that are (not) oriented.
CONSTANT int stored_before(int s, bool with_orientation) {
  int count = 0;
  for (int t = 0; t < s; ++t) count += stored(t) && oriented(t) == with_orientation;
  return count;
}

// The last stored set before set s, -1 for none.
CONSTANT int last_stored(int s) {
  int t = s - 1;
  while (t >= 0 && !stored(t)) --t;
  return t;
}

constexpr i64 kStored = stored_before(kNumSets, false), kOrientedStored = stored_before(kNumSets, true);

// Number of matched vertices that the elements of a set are adjacent to: the least degree that they have.
CONSTANT int backward_neighbours(int s) {
  int count = 0;
  for (int t = s; t >= 0; t = kSets[t].source) count += kSets[t].kind != SUBTRACT;
  return count;
}

CONSTANT int highest_bit(u64 mask) {
  int bit = -1;
  for (; mask; mask >>= 1) ++bit;
  return bit;
}

CONSTANT int largest(int a, int b) { return a > b ? a : b; }

// The depth after whose vertex the size of a block, and whether a member lies in it, are known.
CONSTANT int block_depth(int b) {
  const int bounds = highest_bit(kBlocks[b].below | kBlocks[b].above);
  return largest(kSets[kBlocks[b].candidates].depth, bounds);
}

CONSTANT int member_depth(int m) {
  const Block& block = kBlocks[kMembers[m].block];
  return largest(kMembers[m].depth, highest_bit(kMembers[m].mask | block.below | block.above));
}

// Without set operations at the last depth, each lane can try a candidate of its own there.
CONSTANT bool lanes_at_last_depth() { return kDepth > kColumns && first_set(kDepth - 1) == kNumSets; }
