// Deal arcs to blocks, so that hubs are many blocks' work: the neighbours of an arc's vertex are a bitmap, and the rows of
// the vertices that its arcs lead to are looked up in it.
#pragma once
#include "row_bitmap.cuh"

constexpr int kWarps = kThreads / 32;
constexpr int kFew = 32;       // entries of a row that are searched, by a warp
constexpr i64 kManyArcs = 64;  // of a vertex, that are too many for a warp

struct Graph {
  const i64* indptr;
  const u32* indices;
  const i64* split;
  i64 num_vertices;
};

// Ranges of `size` arcs of first to last - 1, one after the other.
struct ArcTasks {
  i64 first, last, size;
  i64 words;  // of the bitmap
  u32* next;
  const u32* stop;
};

// How many arcs the warps take at once, so that all of them have some.
DEVICE int arcs_at_once(i64 arcs, int warps) {
  return static_cast<int>(min(max((arcs + warps - 1) / warps, i64(1)), i64(32)));
}

// Call kind.visit(g, x, begin, end, row, warp, warps, place) for the arcs of every vertex x; kind.row(g, x) is the row that
// is searched by place(y), and kind.begin(g, x) the first arc of x that counts.
template <bool PLACES, typename Kind>
DEVICE void for_arcs(const Graph& g, Kind& kind, const ArcTasks& tasks) {
  const int warp = warp_in_block(), lane = lane_id();
  u32 *bits = dynamic_shared + 4, *before = bits + tasks.words;
  for (i64 w = threadIdx.x; w < tasks.words; w += blockDim.x) bits[w] = 0;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(tasks.stop) ? kNoVertex : atomicAdd(tasks.next, 1u);
    __syncthreads();
    const i64 from = tasks.first + dynamic_shared[0] * tasks.size, to = min(from + tasks.size, tasks.last);
    if (from >= tasks.last) return;
    for (i64 base = warp_lower_bound(g.indptr, g.num_vertices + 1, from + 1) - 1;
         base < g.num_vertices && g.indptr[base] < to; base += 32) {
      const i64 own = base + lane;
      const bool in = own < g.num_vertices;
      const i64 own_begin = in ? max(kind.begin(g, own), from) : 0, own_end = in ? min(g.indptr[own + 1], to) : 0;
      const int length = own_begin < own_end ? kind.row(g, own).length : 0;
      const bool heavy = length > kFew || (length && own_end - own_begin > kManyArcs);
      for (u32 todo = __ballot_sync(kAll, heavy); todo; todo &= todo - 1) {
        const int i = __ffs(todo) - 1;
        const i64 begin = __shfl_sync(kAll, own_begin, i), end = __shfl_sync(kAll, own_end, i);
        const Row row = kind.row(g, base + i);
        const Bitmap<PLACES> place = fill_bitmap<PLACES>(row, tasks.words, bits, before);
        __syncthreads();
        kind.visit(g, base + i, begin, end, row, warp, kWarps, place);
        __syncthreads();
        clear_bitmap(place, bits);
        __syncthreads();
      }
      u32 todo = __ballot_sync(kAll, length && !heavy);
      for (int number = 0; todo; todo &= todo - 1, ++number) {
        if (number % kWarps != warp) continue;
        const int i = __ffs(todo) - 1;
        const Row row = kind.row(g, base + i);
        kind.visit(g, base + i, __shfl_sync(kAll, own_begin, i), __shfl_sync(kAll, own_end, i), row, 0, 1, row);
      }
    }
  }
}
