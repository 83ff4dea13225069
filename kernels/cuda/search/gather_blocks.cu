// Empty a pool of blocks: bring each row's values to where the rows before it end.
#include "search/block_pool.cuh"

// What is kept of the rows that were extended.
struct Kept {
  u64 rows;
  u64 last;   // the last one's number, plus one
  u64 found;  // new vertices
};

// Keep rows as long as there is room for their values. `ends` are inclusive prefix sums of the counts that are positive,
// so they are right for all rows that are kept.
extern "C" __global__ void keep_rows(i64* counts, const i64* ends, i64 num_rows, i64 capacity, Kept* kept) {
  const i64 stride = static_cast<i64>(gridDim.x) * blockDim.x;
  u64 rows = 0, last = 0, found = 0;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < num_rows; i += stride) {
    if (counts[i] < 0) continue;
    if (ends[i] > capacity) {
      counts[i] = kNotExtended;
    } else {
      ++rows;
      last = i + 1;
      found = ends[i];
    }
  }
  if (!rows) return;
  atomicAdd(&kept->rows, rows);
  atomicMax(&kept->last, last);
  atomicMax(&kept->found, found);
}

// Rows whose count is not positive have no values; `ends` are inclusive prefix sums of the positive counts.
extern "C" __global__ void __launch_bounds__(256, 4)
    gather_blocks(const u32* values, const u32* follows, const i64* counts, const i64* ends, const u32* starts,
                  i64 num_rows, u32* out) {
  const int lane = lane_id();
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  const i64 warp = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
  for (i64 base = warp * 32; base < num_rows; base += warps * 32) {
    const i64 own = base + lane;
    const i64 own_count = own < num_rows ? max(counts[own], i64(0)) : 0;
    const i64 own_begin = own_count ? ends[own] - own_count : 0;
    const u32 own_start = own_count ? starts[own] : 0;
    u32 wanted = __ballot_sync(kAll, own_count > 0);
    while (wanted) {
      const int i = __ffs(wanted) - 1;
      wanted &= wanted - 1;
      const i64 count = __shfl_sync(kAll, own_count, i);
      u32* to = out + __shfl_sync(kAll, own_begin, i);
      const u32 start = __shfl_sync(kAll, own_start, i);
      u32 block = start >> kUsedBits, used = start & ((1u << kUsedBits) - 1);
      for (i64 done = 0; done < count;) {
        if (used == kBlockValues) {
          block = follows[block];
          used = 0;
        }
        const int part = static_cast<int>(min(count - done, static_cast<i64>(kBlockValues - used)));
        const u32* from = values + static_cast<u64>(block) * kBlockValues + used;
        for (int j = lane; j < part; j += 32) to[done + j] = from[j];
        done += part;
        used += part;
      }
    }
  }
}
