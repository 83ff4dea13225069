// Bitmap tables over the out-neighbours of a vertex, and what is counted in them by a warp.
//
// Row i of a table says which of the out-neighbours 0 to i - 1 are adjacent to out-neighbour i.
#pragma once
#include "pages.cuh"


DEVICE int row_words(int i) { return (i + 31) >> 5; }

// Rows are packed: those of 32 numbers each take one word more than the 32 before.
DEVICE u32 row_start(int i) {
  const u32 group = i >> 5, rest = i & 31;
  return (16 * group + rest) * (group + 1);
}

// Fill in row i of a table that holds zeros there, by one warp; the out-neighbours begin at arc `a`, or at their copy.
DEVICE void build_row(const Rows& graph, i64 a, int i, u32* table) {
  const u32* neighbours = graph.indices + a;
  u32* row = table + row_start(i);
  const u32 u = neighbours[i];
  i64 begin = graph.indptr[u];
  const int length = static_cast<int>(graph.split[u] - begin);
  begin = place_of_list(graph.places, begin, length);
  for (int j = lane_id(); j < length; j += 32) {
    const u32 x = graph.indices[begin + j];
    const int at = lower_bound(neighbours, i, x);
    if (at < i && neighbours[at] == x) atomicOr(&row[at >> 5], 1u << (at & 31));
  }
}

// Tables of the vertices from `first` on that were made before; null: they are made here.
struct Tables {
  u32* words;
  const i64* starts;
  i64 first;

  DEVICE u32* of(i64 v) const { return words + starts[v - first]; }
};

// Queue the members of a bitmap, and call visit(number) for each batch: 32 members, or at the end those that are left.
template <typename Visit>
DEVICE void for_each_batch(const u32* bitmap, int words, u32* queue, Visit visit) {
  const int lane = lane_id();
  int pending = 0;
  for (int w = 0; w < words; ++w) {
    const u32 bits = bitmap[w];
    if (bits >> lane & 1) queue[pending + __popc(bits & lanes_before())] = 32 * w + lane;
    pending += __popc(bits);
    __syncwarp();
    if (pending >= 32) {
      visit(32);
      const u32 moved = queue[32 + lane];
      __syncwarp();
      queue[lane] = moved;
      pending -= 32;
      __syncwarp();
    }
  }
  if (pending) visit(pending);
  __syncwarp();
}

// Call visit(x) for the members of a bitmap, each lane for members of its own, 32 at a time.
template <typename Visit>
DEVICE void for_each_member(const u32* bitmap, int words, u32* queue, Visit visit) {
  for_each_batch(bitmap, words, queue, [&](int number) {
    if (lane_id() < number) visit(static_cast<int>(queue[lane_id()]));
  });
}

constexpr int kSector = 8;  // words of global memory that are read together

// Count the edges among the chosen candidates in a table in global memory: eight lanes share a row, so a warp uses all
// of the sectors that it reads. Each lane returns its part.
DEVICE u64 count_edges_by_sectors(const u32* table, const u32* chosen, int words, u32* queue) {
  constexpr int groups = 32 / kSector;
  u64 total = 0;
  for_each_batch(chosen, words, queue, [&](int number) {
    u32 found = 0;
    for (int at = lane_id() / kSector; at < number; at += 2 * groups) {
      // Read two rows at once, so that more reads are under way; the second row, if there is one, is at least as long.
      const int x = queue[at], y = at + groups < number ? queue[at + groups] : x;
      const u32 *row = table + row_start(x), *other = table + row_start(y);
      const int own = row_words(x), all = row_words(y), others = x == y ? 0 : all;
      for (int w = lane_id() % kSector; w < all; w += kSector) {
        const u32 wanted = chosen[w];
        found += __popc(w < own ? wanted & row[w] : 0) + __popc(w < others ? wanted & other[w] : 0);
      }
    }
    total += found;
  });
  return total;
}

// Count the edges among the chosen ones; each lane returns its part.
DEVICE u64 count_edges(const u32* table, const u32* chosen, int words, u32* queue) {
  u64 total = 0;
  for_each_member(chosen, words, queue, [&](int x) {
    const u32* row = table + row_start(x);
    u32 found = 0;
    for (int w = 0; w < row_words(x); ++w) found += __popc(chosen[w] & row[w]);
    total += found;
  });
  return total;
}

// Count the triangles among the chosen ones; each lane returns its part.
DEVICE u64 count_triangles(const u32* table, const u32* chosen, int words, u32* queue) {
  u64 total = 0;
  for_each_member(chosen, words, queue, [&](int x) {
    const u32* row = table + row_start(x);
    u32 found = 0;
    for (int w = 0; w < row_words(x); ++w) {
      u32 bits = chosen[w] & row[w];
      while (bits) {
        const int y = 32 * w + __ffs(bits) - 1;
        bits &= bits - 1;
        const u32* last = table + row_start(y);
        for (int z = 0; z < row_words(y); ++z) found += __popc(chosen[z] & row[z] & last[z]);
      }
    }
    total += found;
  });
  return total;
}
