// Count the ways to place the vertices behind the last depth of a search, without visiting them: sums of products of the
// sizes of blocks.
#pragma once
#include "search/row_sets.cuh"

// How many matched vertices lie in each block's set although they must not be counted.
struct Excluded {
  int count[kNumBlocks ? kNumBlocks : 1] = {};
};

struct SuffixCount : RowSets {
  i64 size[kNumBlocks ? kNumBlocks : 1];
  u64 total = 0;
  double estimate = 0;
  i64 modulus = 0;  // a prime, if counts are residues

  // Measure the blocks whose size becomes known at depth D.
  template <int D, bool LANES, int B = 0>
  DEVICE void measure_blocks() {
    if constexpr (B < kNumBlocks) {
      if constexpr (block_depth(B) == D) {
        constexpr Block block = kBlocks[B];
        constexpr SetOp op = kSets[block.candidates];
        const u32* array = members[block.candidates];
        int count = length[block.candidates];
        if constexpr (!op.size_only) {
          trim<block.below & ~op.below, block.above & ~op.above, LANES>(array, count);
        }
        size[B] = count;
      }
      measure_blocks<D, LANES, B + 1>();
    }
  }

  template <u64 MASK, int D = 0>
  DEVICE bool adjacent_to_all(u32 x) const {
    if constexpr (MASK >> D == 0) {
      return true;
    } else {
      if constexpr (MASK >> D & 1) {
        if (!adjacent(graph, value[D], x)) return false;
      }
      return adjacent_to_all<MASK, D + 1>(x);
    }
  }

  // Find the matched vertices that lie in a block, as far as depth D decides it.
  template <int D, int M = 0>
  DEVICE void find_members(Excluded& excluded) const {
    if constexpr (M < kNumMembers) {
      if constexpr (member_depth(M) == D) {
        constexpr Member member = kMembers[M];
        constexpr Block block = kBlocks[member.block];
        const u32 x = value[member.depth];
        const bool inside = x < smallest<block.below>() && x >= beyond_largest<block.above>();
        if (inside && adjacent_to_all<member.mask>(x)) ++excluded.count[member.block];
      }
      find_members<D, M + 1>(excluded);
    }
  }

  template <int D, bool LANES>
  DEVICE void settle(Excluded& excluded) {
    measure_blocks<D, LANES>();
    find_members<D>(excluded);
  }

  // A number modulo 2^64 or, with residues, a prime below 2^31: times a size, below 2^32, it stays below 2^63.
  DEVICE i64 reduced(i64 number) const {
    if constexpr (kResidues) {
      const i64 rest = number % modulus;
      return rest < 0 ? rest + modulus : rest;
    } else {
      return number;
    }
  }

  template <int T, int C = 1>
  DEVICE void multiply(const Excluded& excluded, i64& product, double& approximate) const {
    if constexpr (C <= kTermWidth) {
      constexpr i64 block = kTerms[T][C];
      if constexpr (block >= 0) {
        const i64 ways = size[block] - excluded.count[block];
        product = reduced(product * ways);
        approximate *= static_cast<double>(ways);
      }
      multiply<T, C + 1>(excluded, product, approximate);
    }
  }

  // Add the number of ways to place the suffix.
  template <int T = 0>
  DEVICE void count_suffix(const Excluded& excluded) {
    if constexpr (T < kNumTerms) {
      constexpr i64 coefficient = kTerms[T][0];
      i64 product = reduced(coefficient);
      double approximate = static_cast<double>(coefficient);
      multiply<T>(excluded, product, approximate);
      total = static_cast<u64>(reduced(static_cast<i64>(total + static_cast<u64>(product))));
      estimate += fabs(approximate);
      count_suffix<T + 1>(excluded);
    }
  }
};
