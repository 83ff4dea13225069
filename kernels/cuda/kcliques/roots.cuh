// Count cliques in the root subgraph of an arc: its candidates, numbered anew, and which of them are not adjacent.
//
// As kernels/cpu/kcliques/roots.py does it: candidates are chosen one by one, until four vertices are missing. A warp
// has the roots of up to 64 candidates; the others are searched by all warps of a block, which take the candidates that
// are chosen first from a counter.
#pragma once
#include "kcliques/complement.cuh"

// constexpr int kCliqueSize, kRootedFrom (size of the smallest cliques that are counted so), kMostRooted (candidates)
#include "generated.cuh"

constexpr bool kRooted = kCliqueSize >= kRootedFrom;
constexpr int kRootLevels = kRooted ? kCliqueSize - 6 : 0;  // whose candidates are stored per warp
constexpr int kSavedLevels = kCliqueSize > 8 ? kCliqueSize - 7 : 1;  // levels that a loop over levels returns to

// Words that a root of a number of candidates takes for a block.
DEVICE u32 bitmap_root_words(int size, int warps) {
  const int words = row_words(size), half = (size + 1) / 2;
  return size * (words | 1) + half + words + warps * (kRootLevels * words + half);
}

// What all warps of a block count at.
struct BlockCounters {
  u32 task, arcs, words, bitmaps;  // the block's work, and how many arcs, roots of words and of bitmaps were taken or found
  u32 first, taken;                // roots and candidates that were taken
  u32 pairs, wedges;
};

struct RootSearch {
  const u32* table;
  u32* queue;  // u32[kTableQueue] of the warp
  const u32* stop;
  Tally tally;

  DEVICE static u32 adjacent(const u32* table, int i, int j) { return table[row_start(i) + (j >> 5)] >> (j & 31) & 1; }

  // Search among up to 64 candidates, those in a row of the table.
  DEVICE void search_word(const WordRoot& root, const u32* candidates, int words) {
    const int lane = lane_id();
    int size = 0;
    __syncwarp();
    for (int w = 0; w < words; ++w) {
      const u32 bits = candidates[w];
      if (bits >> lane & 1) queue[size + __popc(bits & lanes_before())] = 32 * w + lane;
      size += __popc(bits);
    }
    __syncwarp();
    u64 low = 0, high = 0;
    const int own = lane < size ? static_cast<int>(queue[lane]) : 0;
    const int upper = lane + 32 < size ? static_cast<int>(queue[lane + 32]) : 0;
    for (int b = 0; b < size; ++b) {
      const int other = static_cast<int>(queue[b]);
      const bool low_apart = lane > b && lane < size && !adjacent(table, own, other);
      const bool high_apart = lane + 32 > b && lane + 32 < size && !adjacent(table, upper, other);
      if (low_apart) low |= 1ull << b;
      if (high_apart) high |= 1ull << b;
      const u32 first = __ballot_sync(kAll, low_apart);
      const u64 later = static_cast<u64>(__ballot_sync(kAll, high_apart)) << 32 | first;
      if (lane == b) low |= later;
      if (lane + 32 == b) high |= later;
    }
    root.apart[lane] = low;
    root.apart[lane + 32] = high;
    __syncwarp();
    choose_in_word(root, size == 64 ? ~0ull : word_below(size));
    __syncwarp();
  }

  // Count the cliques of kCliqueSize - 2 vertices among the chosen candidates, all levels in one loop as in bitmaps.cu.
  DEVICE void choose_in_word(const WordRoot& root, u64 chosen) {
    constexpr int top = kCliqueSize - 2;
    if constexpr (top <= 4) {
      root.count(chosen, tally);
    } else {
      u64 sets[kSavedLevels], rests[kSavedLevels];  // of each level above: its candidates, and those left to choose
      u64 rest = chosen;
      for (int need = top;;) {
        if (!rest) {
          if (need == top || stop_asked(stop)) return;
          ++need;
          chosen = sets[need - 6];
          rest = rests[need - 6];
          continue;
        }
        const int x = __ffsll(static_cast<i64>(rest)) - 1;
        rest &= rest - 1;
        const u64 below = chosen & ~root.apart[x] & word_below(x);
        if (__popcll(below) < need - 1) continue;
        if (need == 5) {
          root.count(below, tally);
        } else {
          sets[need - 6] = chosen;
          rests[need - 6] = rest;
          --need;
          chosen = rest = below;
        }
      }
    }
  }

  // Search among the candidates, those in a row of the table, by all warps of a block; `store` is the root's.
  DEVICE void search_bitmap(const u32* candidates, int size, u32* store, BlockCounters* counters) {
    const int warps = blockDim.x >> 5, words = row_words(size), half = (size + 1) / 2, lane = lane_id();
    const BitmapRoot root = {store, words | 1};
    u16* members = reinterpret_cast<u16*>(store + size * root.stride);
    u32* everyone = store + size * root.stride + half;
    u32* levels = everyone + words + warp_in_block() * (kRootLevels * words + half);
    u16* degrees = reinterpret_cast<u16*>(levels + kRootLevels * words);
    if (warp_in_block() == 0) {
      int before = 0;
      for (int w = 0; before < size; ++w) {
        const u32 bits = candidates[w];
        if (bits >> lane & 1) members[before + __popc(bits & lanes_before())] = static_cast<u16>(32 * w + lane);
        before += __popc(bits);
      }
      for (int w = lane; w < words; w += 32) everyone[w] = 32 * w + 32 <= size ? kAll : (1u << (size & 31)) - 1;
      if (lane == 0) counters->taken = counters->pairs = counters->wedges = 0;
    }
    __syncthreads();
    for (int i = warp_in_block(); i < size; i += warps) fill_row(root, members, i, size, words);
    __syncthreads();
    if constexpr (kRootLevels == 0) {
      count_by_block(root, size, everyone, words, reinterpret_cast<u16*>(everyone + words), counters);
    } else {
      while (!(kRootLevels > 1 && stop_asked(stop))) {
        const int i = size - 1 - static_cast<int>(take(&counters->taken, 1));
        if (i < kCliqueSize - 3) break;
        choose_first(root, i, words, everyone, levels, degrees);
      }
    }
    __syncthreads();
  }

  // Write row i of a root, by a warp.
  DEVICE void fill_row(const BitmapRoot& root, const u16* members, int i, int size, int words) const {
    const int lane = lane_id(), own = members[i];
    u32* row = root.apart + i * root.stride;
    for (int w = 0; w < words; ++w) {
      const int j = 32 * w + lane;
      bool is_apart = false;
      if (j < size && j != i) is_apart = !(j < i ? adjacent(table, own, members[j]) : adjacent(table, members[j], own));
      const u32 bits = __ballot_sync(kAll, is_apart);
      if (lane == 0) row[w] = bits;
    }
  }

  // Write those of the chosen candidates that are before candidate x and adjacent to it; returns their number.
  DEVICE static int choose_before(const BitmapRoot& root, int x, const u32* chosen, u32* next) {
    const u32* row = root.row(x);
    u32 present = 0;
    __syncwarp();
    for (int w = lane_id(); w < row_words(x); w += 32) {
      const u32 some = chosen[w] & ~row[w] & (w == x >> 5 ? bits_below(x) : kAll);
      next[w] = some;
      present += __popc(some);
    }
    __syncwarp();
    return static_cast<int>(__reduce_add_sync(kAll, present));
  }

  // Choose candidate i, and count the cliques of kCliqueSize - 3 vertices among those before it; `levels` have `width`
  // words each.
  DEVICE void choose_first(const BitmapRoot& root, int i, int width, const u32* everyone, u32* levels, u16* degrees) {
    constexpr int top = kCliqueSize - 3;
    int path[kSavedLevels];  // the candidate that was chosen on each level above
    const u32* own = everyone;
    u32* next = levels;
    u32 bits = 0;
    for (int need = top, x = i, w = 0, span = 0;;) {
      const int size = choose_before(root, x, own, next);
      if (size >= need && need <= 4) root.count(size, next, row_words(x), degrees, queue, tally);
      if constexpr (top <= 4) return;
      if (size >= need && need > 4) {
        path[need - 5] = x;
        --need;
        own = next;
        next += width;
        span = row_words(x);
        w = 0;
        bits = own[0];
      }
      // Find the next candidate of the level, or else of those above.
      for (;;) {
        if (need == top) return;
        while (!bits && ++w < span) bits = own[w];
        if (bits) break;
        if (++need == top || stop_asked(stop)) return;
        next -= width;
        own = next - width;
        span = row_words(path[need - 4]);
        w = path[need - 5] >> 5;
        bits = own[w] & ~((2u << (path[need - 5] & 31)) - 1);
      }
      x = 32 * w + __ffs(static_cast<int>(bits)) - 1;
      bits &= bits - 1;
    }
  }

  // Count the cliques of four vertices among all candidates, by all threads of a block.
  DEVICE void count_by_block(const BitmapRoot& root, int size, const u32* everyone, int words, u16* degrees,
                             BlockCounters* counters) {
    tally.reserve(size);
    Degrees sums = {0, 0, 0};
    for (int v = threadIdx.x; v < size; v += blockDim.x) {
      const int degree = root.degree_of(v, everyone, words);
      degrees[v] = static_cast<u16>(degree);
      sums.add(degree);
    }
    const u32 own_pairs = __reduce_add_sync(kAll, sums.pairs), own_wedges = __reduce_add_sync(kAll, sums.wedges);
    if (lane_id() == 0 && own_pairs) {
      atomicAdd(&counters->pairs, own_pairs);
      atomicAdd(&counters->wedges, own_wedges);
    }
    __syncthreads();
    const u32 pairs = counters->pairs / 2, wedges = counters->wedges;
    const bool pays = complement_pays(size, pairs, wedges);
    if (pays) tally.total += (threadIdx.x == 0 ? by_degrees(size, pairs, wedges) : 0) - sums.claws;
    for (int v = threadIdx.x; v < size; v += blockDim.x)
      tally.total += pays ? root.terms_of(v, size, everyone, words, degrees) : root.one_by_one(v, everyone);
  }
};
