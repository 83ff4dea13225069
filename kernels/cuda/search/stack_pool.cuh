// Stacks for the sets of a search whose memory follows need (the paged stacks of T-DFS, with two sizes of page).
//
// The sets of a path lie one behind the other, so a path takes what its sets have, not what they might have. Every warp
// has a stack of its own; where that overflows, it borrows a long one, with room for the longest sets. A warp borrows
// one at most, and who has one waits for no other: so all get on, however few there are.
#pragma once
#include "common.cuh"

struct StackPool {
  u32* longs;  // u32[number, size]; behind the warps' own stacks
  u32* lent;   // u32[number]
  u32 number;
  i64 size;
  i64 own;  // elements of a warp's own stack

  // Wait for a long stack; null once the host asks to stop.
  DEVICE u32* borrow(const u32* stop) const {
    i64 found = -1;
    if (lane_id() == 0) {
      u32 at = (blockIdx.x * (blockDim.x >> 5) + warp_in_block()) % number;
      for (u32 nap = 100;; nap = min(nap * 2, 8000u)) {
        for (u32 tried = 0; tried < number && found < 0; ++tried) {
          if (!load_volatile(&lent[at]) && atomicCAS(&lent[at], 0u, 1u) == 0) found = at;
          at = at + 1 == number ? 0 : at + 1;
        }
        if (found >= 0 || load_volatile(stop)) break;
        __nanosleep(nap);
      }
    }
    found = __shfl_sync(kAll, found, 0);
    return found < 0 ? nullptr : longs + found * size;
  }

  DEVICE void give_back(const u32* stack) const {
    __syncwarp();  // all lanes have read what they wanted
    if (lane_id() == 0) {
      __threadfence();
      atomicExch(&lent[(stack - longs) / size], 0u);
    }
  }
};
