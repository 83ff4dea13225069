// Count triangles, and pairs of triangles with an edge in common (diamonds), in one launch. See
// longwall.kernels.cpu.triangles and longwall.kernels.cpu.homomorphisms.diamonds.
#include "arc_tasks.cuh"

// Look up rows of other vertices; a kind says which, and what their common entries count.
template <typename Kind>
struct LookUp : Kind {
  u64 total;

  // By some warps; each lane adds its part to the total.
  template <typename Place>
  DEVICE void visit(const Graph& g, i64 x, i64 begin, i64 end, const Row& row, int warp, int warps, const Place& place) {
    const int lane = lane_id(), step = arcs_at_once(end - begin, warps);
    for (i64 base = begin + static_cast<i64>(step) * warp; base < end; base += static_cast<i64>(step) * warps) {
      const bool in = lane < step && base + lane < end;
      const u32 other = in ? g.indices[base + lane] : 0;
      const int length = in ? this->length(g, x, row, base + lane, other) : 0;
      const i64 from = in ? g.indptr[other] : 0;
      u32 todo = __ballot_sync(kAll, length > 0);
      // The first entries of the next row are read before those of this one are looked up.
      int i = todo ? __ffs(todo) - 1 : 0;
      const u32* entries = g.indices + __shfl_sync(kAll, from, i);
      int size = __shfl_sync(kAll, length, i);
      u32 first = lane < size ? entries[lane] : 0;
      while (todo) {
        todo &= todo - 1;
        i = todo ? __ffs(todo) - 1 : 0;
        const u32* next_entries = g.indices + __shfl_sync(kAll, from, i);
        const int next_size = todo ? __shfl_sync(kAll, length, i) : 0;
        const u32 next_first = lane < next_size ? next_entries[lane] : 0;
        u32 found = lane < size && place(first) >= 0;
#pragma unroll 2
        for (int j = lane + 32; j < size; j += 32) found += place(entries[j]) >= 0;
        const u32 common = __reduce_add_sync(kAll, found);
        if (lane == 0) total += this->count(common);
        entries = next_entries;
        size = next_size;
        first = next_first;
      }
    }
  }
};

// The triangles of the arcs first to last - 1, which lead from the largest vertex to the middle one: of two lists of
// smaller neighbours the longer one is the bitmap.
struct Triangles {
  i64 first, last;

  DEVICE Row row(const Graph& g, i64 x) const {
    return {g.indices + g.indptr[x], static_cast<int>(g.split[x] - g.indptr[x])};
  }

  DEVICE i64 begin(const Graph& g, i64 x) const { return g.indptr[x]; }

  // How many entries of the row of `other`, to which an arc of x leads, are looked up.
  DEVICE int length(const Graph& g, i64 x, const Row& row, i64 arc, u32 other) const {
    const i64 from = g.indptr[other], to = g.split[other];
    const int size = static_cast<int>(to - from);
    if (arc < g.split[x]) return size < row.length && arc >= first && arc < last ? size : 0;
    if (size > row.length || to <= first || from >= last) return 0;
    if (from >= first && to <= last) return size;
    const i64 back = from + lower_bound(g.indices + from, size, static_cast<u32>(x));
    return back >= first && back < last ? size : 0;
  }

  DEVICE u64 count(u32 common) const { return common; }
};

// Pairs of triangles whose common edge leads from a vertex to a larger one.
struct Diamonds {
  DEVICE Row row(const Graph& g, i64 x) const {
    return {g.indices + g.indptr[x], static_cast<int>(g.indptr[x + 1] - g.indptr[x])};
  }

  DEVICE i64 begin(const Graph& g, i64 x) const { return g.split[x]; }

  DEVICE int length(const Graph& g, i64, const Row&, i64, u32 other) const {
    return static_cast<int>(g.indptr[other + 1] - g.indptr[other]);
  }

  DEVICE u64 count(u32 common) const { return common ? static_cast<u64>(common) * (common - 1) / 2 : 0; }
};

extern "C" __global__ void __launch_bounds__(256, 6)
    count_triangles(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 first, i64 last,
                    i64 size, i64 words, LaunchState* state, const u32* stop, u64* result) {
  LookUp<Triangles> kind = {{first, last}, 0};
  for_arcs<false>(Graph{indptr, indices, split, num_vertices}, kind,
                  {0, indptr[num_vertices], size, words, &state->next, stop});
  finish(state, kind.total, result);
}

// Those whose common edge has its smaller end in first to last - 1.
extern "C" __global__ void __launch_bounds__(256, 6)
    count_diamonds(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 first, i64 last,
                   i64 size, i64 words, LaunchState* state, const u32* stop, u64* result) {
  LookUp<Diamonds> kind = {{}, 0};
  for_arcs<false>(Graph{indptr, indices, split, num_vertices}, kind,
                  {indptr[first], indptr[last], size, words, &state->next, stop});
  finish(state, kind.total, result);
}
