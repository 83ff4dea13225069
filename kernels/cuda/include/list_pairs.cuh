// Count the triangles of arcs to smaller neighbours by looking lists up in others: a long list is a bitmap in a block's
// shared memory, in which those of its vertices are looked up; of a short one, the pairs are searched for, by a warp.
#pragma once
#include "pages.cuh"
#include "row_bitmap.cuh"

constexpr int kWarps = 8;   // of a block
constexpr int kShort = 16;  // entries of a list whose pairs are searched for
constexpr int kAhead = 4;   // entries that a lane reads before it looks them up

// Ranges of `size` arcs of first to last - 1, one after the other, and the vertices that count, low to high - 1, in the
// middle of a triangle.
struct PairTasks {
  i64 first, last, low, high, size;
  i64 words;  // of the bitmap
  u32* next;
  const u32* stop;
};

// A list, and which of its entries are vertices in the middle.
struct Span {
  const u32* entries;
  int length, begin, end;
};

DEVICE Span span_of(const Rows& graph, i64 x, i64 from, i64 to, i64 low, i64 high) {
  const i64 row = graph.indptr[x], length = graph.split[x] - row;
  Span span = {nullptr, static_cast<int>(length), 0, 0};
  const int begin = static_cast<int>(max(from - row, i64(1))), end = static_cast<int>(min(to - row, length));
  if (begin >= end || x <= low) return span;
  span.entries = graph.indices + place_of_list(graph.places, row, length);
  span.begin = begin;
  span.end = end;
  if (x > high) span.end = begin + lower_bound(span.entries + begin, end - begin, static_cast<u32>(high));
  if (low) span.begin += lower_bound(span.entries + begin, span.end - begin, static_cast<u32>(low));
  return span;
}

// Look up the lists of a span's vertices among its entries, by a block; a lane's own hits are returned.
DEVICE u32 look_up_lists(const Rows& graph, const Span& span, const Bitmap<false>& place) {
  const int lane = lane_id(), number = span.end - span.begin;
  const int step = min(max((number + kWarps - 1) / kWarps, 1), 32);
  u32 found = 0;
  for (int base = span.begin + step * warp_in_block(); base < span.end; base += step * kWarps) {
    const bool in = lane < step && base + lane < span.end;
    const List own = in ? list_of(graph, span.entries[base + lane]) : List{nullptr, 0};
    for (u32 todo = __ballot_sync(kAll, own.length > 0); todo; todo &= todo - 1) {
      const List list = list_of_lane(own, __ffs(todo) - 1);
      for (int j = lane; j < list.length; j += 32 * kAhead) {
        u32 entries[kAhead];
#pragma unroll
        for (int k = 0; k < kAhead; ++k) entries[k] = j + 32 * k < list.length ? list.entries[j + 32 * k] : kNoVertex;
#pragma unroll
        for (int k = 0; k < kAhead; ++k)
          if (entries[k] != kNoVertex) found += place(entries[k]) >= 0;
      }
    }
  }
  return found;
}

// Search for the pairs of a short span, by a warp: of the entries i > j the one j in the list of i.
DEVICE u32 search_pairs(const Rows& graph, const Span& span) {
  const int lane = lane_id();
  const bool in = lane >= span.begin && lane < span.end;
  const u32 entry = lane < span.length ? span.entries[lane] : 0;
  const List own = in ? list_of(graph, entry) : List{nullptr, 0};
  // Rows of a rectangle: row r has the pairs of entry r with larger ones, then those of entry even - 1 - r.
  const int even = span.end + (span.end & 1), columns = even - 1, pairs = even / 2 * columns;
  u32 found = 0;
  for (int base = 0; base < pairs; base += 32) {
    const int r = (base + lane) / columns, c = (base + lane) % columns;
    const int i = c >= r ? c + 1 : even - 1 - c, j = c >= r ? r : even - 1 - r;
    const List list = list_of_lane(own, i & 31);
    const u32 wanted = __shfl_sync(kAll, entry, j & 31);
    if (base + lane < pairs && i >= span.begin && i < span.end) found += Row{list.entries, list.length}(wanted) >= 0;
  }
  return found;
}

// Count them, by blocks; each lane adds its part.
DEVICE u64 pairs_of_lists(const Rows& graph, i64 num_vertices, const PairTasks& tasks) {
  const int warp = warp_in_block(), lane = lane_id();
  u32* bits = dynamic_shared + 4;
  u64 total = 0;
  for (i64 w = threadIdx.x; w < tasks.words; w += blockDim.x) bits[w] = 0;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(tasks.stop) ? kNoVertex : atomicAdd(tasks.next, 1u);
    __syncthreads();
    const i64 from = tasks.first + dynamic_shared[0] * tasks.size, to = min(from + tasks.size, tasks.last);
    if (from >= tasks.last) return total;
    for (i64 base = warp_lower_bound(graph.indptr, num_vertices + 1, from + 1) - 1;
         base < num_vertices && graph.indptr[base] < to; base += 32) {
      const Span own = base + lane < num_vertices ? span_of(graph, base + lane, from, to, tasks.low, tasks.high)
                                                  : Span{nullptr, 0, 0, 0};
      const bool some = own.begin < own.end, few = own.length <= kShort;
      const u32 heavy = __ballot_sync(kAll, some && !few), light = __ballot_sync(kAll, some && few);
      int number = 0;
      for (u32 todo = heavy | light; todo; todo &= todo - 1) {
        const int i = __ffs(todo) - 1;
        const Span span = {list_of_lane({own.entries, 0}, i).entries, __shfl_sync(kAll, own.length, i),
                           __shfl_sync(kAll, own.begin, i), __shfl_sync(kAll, own.end, i)};
        if (light >> i & 1) {
          if (number++ % kWarps == warp) total += search_pairs(graph, span);
          continue;
        }
        // Whatever is in a list of the entries is smaller than the last one that counts.
        const Row row = {span.entries, span.end - 1};
        const Bitmap<false> place = fill_bitmap<false>(row, num_vertices, tasks.words, bits, bits);
        __syncthreads();
        total += look_up_lists(graph, span, place);
        __syncthreads();
        clear_bitmap(place, bits);
        __syncthreads();
      }
    }
  }
}
