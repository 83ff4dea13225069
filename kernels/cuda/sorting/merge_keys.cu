// Merge sorted lists of keys that lie one behind the other (GAMMA, Algorithm 3 with Optimization 3).
//
// Lists are divided at checkpoints into tiles that fit shared memory. Equal keys keep the order of their lists. Lists that
// are not sorted, for they come from a damaged file, lead to nonsense, but nothing is read or written outside the arrays.
#include "common.cuh"
#include "generated.cuh"

// Keys of one or two words; `high` is not read where there is one.
struct Keys {
  const u64* high;
  const u64* low;
};

struct Key {
  u64 high, low;
};

template <typename Index>
DEVICE Key load(Keys keys, Index at) {
  return {kWords == 2 ? keys.high[at] : 0, keys.low[at]};
}
DEVICE bool less(Key a, Key b) { return kWords == 2 && a.high != b.high ? a.high < b.high : a.low < b.low; }

// How many of the sorted keys at begin, begin + step, ... are smaller than `key`, or not larger where `after`.
template <typename Index>
DEVICE Index matched(Keys keys, Index begin, Index step, Index length, Key key, bool after) {
  Index first = 0;
  while (length > 0) {
    const Index half = length >> 1;
    const Key other = load(keys, begin + (first + half) * step);
    if (after ? !less(key, other) : less(other, key)) {
      first += half + 1;
      length -= half + 1;
    } else {
      length = half;
    }
  }
  return first;
}

// Every `spacing` keys of a list, the last of them is a checkpoint. Each warp finds where a checkpoint stands among those
// of all lists; for every one in `step`, in that order, it writes where it divides each list: cuts[tiles - 1][lists].
extern "C" __global__ void __launch_bounds__(256)
    find_cuts(const u64* high, const u64* low, const i64* starts, i64 lists, i64 spacing, i64 step,
              const i64* first_checkpoints, u32* cuts) {
  const Keys keys{high, low};
  const int lane = lane_id();
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  for (i64 checkpoint = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
       checkpoint < first_checkpoints[lists]; checkpoint += warps) {
    const i64 own = lower_bound(first_checkpoints, lists + 1, checkpoint + 1) - 1;
    const i64 number = checkpoint - first_checkpoints[own];
    const Key key = load(keys, starts[own] + (number + 1) * spacing - 1);
    i64 passed[(kMostLists + 31) / 32], rank = 0;
    for (int i = 0, list = lane; list < lists; ++i, list += 32) {
      const i64 length = (starts[list + 1] - starts[list]) / spacing;
      passed[i] = list == own ? number + 1
                              : matched<i64>(keys, starts[list] + spacing - 1, spacing, length, key, list < own);
      rank += passed[i];
    }
    rank = __shfl_sync(kAll, warp_sum(rank), 0);
    if (rank % step) continue;
    u32* cut = cuts + (rank / step - 1) * lists;
    for (int i = 0, list = lane; list < lists; ++i, list += 32) {
      const i64 begin = starts[list] + passed[i] * spacing;
      const i64 rest = min(spacing, starts[list + 1] - begin);
      const i64 more = list == own ? 0 : matched<i64>(keys, begin, 1, rest, key, list < own);
      cut[list] = static_cast<u32>(begin + more - starts[list]);
    }
  }
}

// Inclusive prefix sums of `length` numbers in shared memory, by a whole block.
DEVICE void prefix_sums(u32* values, int length, u32* warp_sums) {
  // An odd number of values for each thread: their first ones lie in different banks.
  const int each = (length + blockDim.x - 1) / blockDim.x | 1;
  const int begin = min(static_cast<int>(threadIdx.x) * each, length), end = min(begin + each, length);
  u32 sum = 0;
  for (int i = begin; i < end; ++i) values[i] = sum += values[i];
  u32 before = sum;
  for (int distance = 1; distance < 32; distance <<= 1) {
    const u32 other = __shfl_up_sync(kAll, before, distance);
    if (lane_id() >= distance) before += other;
  }
  if (lane_id() == 31) warp_sums[warp_in_block()] = before;
  __syncthreads();
  before -= sum;
  for (int warp = 0; warp < warp_in_block(); ++warp) before += warp_sums[warp];
  for (int i = begin; i < end; ++i) values[i] += before;
  __syncthreads();
}

// Merge tile after tile, each by a block.
extern "C" __global__ void __launch_bounds__(kMergeThreads)
    merge_tiles(const u64* high, const u64* low, const u64* payload, const i64* starts, i64 num_lists, const u32* cuts,
                i64 tiles, u64* out_high, u64* out_low, u64* out_payload) {
  const int lists = static_cast<int>(num_lists);
  u64* low_keys = reinterpret_cast<u64*>(dynamic_shared);
  u64* high_keys = low_keys + kTile;  // none for keys of one word
  i64* sources = reinterpret_cast<i64*>(low_keys + kTile * kWords);
  i64* earlier_keys = sources + kMostLists;
  u32* counts = reinterpret_cast<u32*>(earlier_keys + 1);
  u32* begins = counts + kTile + kMostLists;
  u32* warp_sums = begins + kMostLists + 1;
  unsigned short* places = reinterpret_cast<unsigned short*>(warp_sums + 32);
  unsigned short* order = reinterpret_cast<unsigned short*>(counts);  // once counts are used up
  const Keys keys{high_keys, low_keys};
  for (i64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    __syncthreads();
    for (int list = threadIdx.x; list < lists; list += kMergeThreads) {
      const i64 size = starts[list + 1] - starts[list];
      const i64 begin = tile ? cuts[(tile - 1) * lists + list] : 0;
      sources[list] = begin;
      begins[list] = static_cast<u32>(max(begin, tile + 1 < tiles ? cuts[tile * lists + list] : size) - begin);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      u32 filled = 0;
      i64 before = 0;
      for (int list = 0; list < lists; ++list) {
        const u32 size = min(begins[list], kTile - filled);
        begins[list] = filled;
        before += sources[list];
        sources[list] += starts[list] - filled;
        filled += size;
      }
      begins[lists] = filled;
      *earlier_keys = before;
    }
    __syncthreads();
    const int length = static_cast<int>(begins[lists]);
    const i64 out = *earlier_keys;
    for (int list = warp_in_block(); list < lists; list += kMergeThreads / 32) {
      for (u32 at = begins[list] + lane_id(); at < begins[list + 1]; at += 32) {
        low_keys[at] = low[sources[list] + at];
        if (kWords == 2) high_keys[at] = high[sources[list] + at];
      }
    }
    if (kHalf) {
      for (int i = threadIdx.x; i < length + lists; i += kMergeThreads) counts[i] = 0;
    }
    __syncthreads();
    // Search each key in the lists before its own, and count there how many keys belong before each key: the place of
    // a key in a list after its own is a prefix sum of these counts.
    for (int at = threadIdx.x, own = 0; at < length; at += kMergeThreads) {
      while (at >= static_cast<int>(begins[own + 1])) ++own;
      const Key key = load(keys, at);
      u32 place = at - begins[own];
      for (int list = 0; list < (kHalf ? own : lists); ++list) {
        if (list == own) continue;
        const int found = matched<int>(keys, begins[list], 1, begins[list + 1] - begins[list], key, list < own);
        place += found;
        // A list has one more place than keys.
        if (kHalf) atomicAdd(counts + begins[list] + list + found, 1u);
      }
      places[at] = static_cast<unsigned short>(place);
    }
    __syncthreads();
    if (kHalf) {
      prefix_sums(counts, length + lists, warp_sums);
      for (int at = threadIdx.x, own = 0; at < length; at += kMergeThreads) {
        while (at >= static_cast<int>(begins[own + 1])) ++own;
        const u32 earlier = own ? counts[begins[own] + own - 1] : 0;
        places[at] = static_cast<unsigned short>(places[at] + counts[at + own] - earlier);
      }
      __syncthreads();
    }
    for (int at = threadIdx.x; at < length; at += kMergeThreads) order[places[at]] = static_cast<unsigned short>(at);
    __syncthreads();
    for (int to = threadIdx.x; to < length; to += kMergeThreads) {
      const u32 at = min(static_cast<int>(order[to]), length - 1);
      out_low[out + to] = low_keys[at];
      if (kWords == 2) out_high[out + to] = high_keys[at];
      if (kPayload) {
        const int list = lower_bound(begins, lists + 1, at + 1) - 1;
        out_payload[out + to] = payload[sources[list] + at];
      }
    }
  }
}
