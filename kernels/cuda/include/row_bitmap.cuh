// The row of a vertex as a bitmap in a block's shared memory, so that a look-up takes two reads.
#pragma once
#include "common.cuh"

// A row that ascends.
struct Row {
  const u32* entries;
  int length;

  // The place of y in the row, -1 where it is not there.
  DEVICE int operator()(u32 y) const {
    const int at = lower_bound(entries, length, y);
    return at < length && entries[at] == y ? at : -1;
  }
};

// The same with a bitmap of the entries below `limit`, of which there are `inner`: before[w] is how many there are
// before word w, if that is not 0. Without PLACES, 0 stands for all places of these.
template <bool PLACES>
struct Bitmap {
  Row row;
  const u32 *bits, *before;
  u32 limit;
  int inner;

  DEVICE int operator()(u32 y) const {
    if (y < limit) {
      const u32 word = bits[y >> 5];
      if (!(word >> (y & 31) & 1)) return -1;
      return PLACES ? static_cast<int>(before[y >> 5] + __popc(word & ((1u << (y & 31)) - 1))) : 0;
    }
    const int at = Row{row.entries + inner, row.length - inner}(y);
    return at < 0 ? at : inner + at;
  }
};

// Fill in the bitmap of a row, by a block; bits: u32[words], zeros. It can be read after a barrier.
template <bool PLACES>
DEVICE Bitmap<PLACES> fill_bitmap(const Row& row, i64 words, u32* bits, u32* before) {
  const u32 limit = static_cast<u32>(min(words * 32, static_cast<i64>(kNoVertex)));
  const bool beyond = row.length && row.entries[row.length - 1] >= limit;
  const int inner = beyond ? lower_bound(row.entries, row.length, limit) : row.length;
  for (int i = threadIdx.x; i < inner; i += blockDim.x) {
    const u32 y = row.entries[i];
    atomicOr(&bits[y >> 5], 1u << (y & 31));
    if (PLACES && (i == 0 || row.entries[i - 1] >> 5 != y >> 5)) before[y >> 5] = i;
  }
  return {row, bits, before, limit, inner};
}

// Make the bits zero again, by a block; after and before a barrier.
template <bool PLACES>
DEVICE void clear_bitmap(const Bitmap<PLACES>& bitmap, u32* bits) {
  for (int i = threadIdx.x; i < bitmap.inner; i += blockDim.x) bits[bitmap.row.entries[i] >> 5] = 0;
}

// What the blocks of a launch share: the next vertices to take, and what was counted. All zero before a launch and after
// it, so that nothing has to be filled with zeros in between.
struct LaunchState {
  u32 next, done;
  u64 sum[2];
};
static_assert(sizeof(LaunchState) == 8 * kLaunchStateWords);

// Add the lanes' counts, those of a block in the first 16 bytes of its shared memory, so that few add to the same place of
// the device's memory; the last block writes the sum to result, and clears what is shared.
DEVICE void finish(LaunchState* shared, u64 total, u64* result) {
  u64* own = reinterpret_cast<u64*>(dynamic_shared);
  __syncthreads();
  if (threadIdx.x < 2) own[threadIdx.x] = 0;
  __syncthreads();
  WideSum{total}.add_lanes_to(own);
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (own[0] | own[1]) WideSum{own[0], own[1]}.add_to(shared->sum);
  __threadfence();
  if (atomicAdd(&shared->done, 1u) == gridDim.x - 1) {
    __threadfence();
    for (int i = 0; i < 2; ++i) result[i] = atomicExch(&shared->sum[i], 0ull);
    shared->next = 0;
    shared->done = 0;
  }
}
