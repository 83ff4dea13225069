// A pool of blocks that warps take one after another, each to write values whose number is not known before.
#pragma once
#include "common.cuh"

constexpr u32 kNoBlock = 0xffffffffu;

// Where a warp writes next: behind the first `used` values of a block.
struct BlockCursor {
  u32 block, used;
  DEVICE u32 packed() const { return block << kUsedBits | used; }
};

struct BlockPool {
  u32* values;   // u32[num_blocks, kBlockValues]
  u32* follows;  // the block in which a warp went on
  u32* taken;    // number of blocks that were requested
  u32 num_blocks;

  // Go on in a new block; false if there is none.
  DEVICE bool grow(BlockCursor& at) const {
    const u32 next = take(taken, 1);
    if (next >= num_blocks) return false;
    if (at.block != kNoBlock && lane_id() == 0) follows[at.block] = next;
    at = {next, 0};
    return true;
  }

  // Write the values of the lanes in `mask` one behind the other; false, and nothing more, once no block is left.
  DEVICE bool append(BlockCursor& at, u32 x, bool kept, u32 mask) const {
    const u32 rank = __popc(mask & lanes_before()), number = __popc(mask), left = kBlockValues - at.used;
    if (kept && rank < left) values[static_cast<u64>(at.block) * kBlockValues + at.used + rank] = x;
    if (number <= left) {
      at.used += number;
      return true;
    }
    if (!grow(at)) return false;
    if (kept && rank >= left) values[static_cast<u64>(at.block) * kBlockValues + rank - left] = x;
    at.used = number - left;
    return true;
  }
};
