// Count triangles, and pairs of triangles with an edge in common (diamonds), in one launch. See
// longwall.kernels.cpu.local_counts.triangles and longwall.kernels.cpu.homomorphisms.diamonds.
#include "local_counts/triangles.cuh"

// Pairs of triangles whose common edge leads from a vertex to a larger one: whole rows are looked up.
struct Diamonds {
  u64 total;

  DEVICE Row row(const Graph& g, i64 x) const {
    return {g.indices + g.indptr[x], static_cast<int>(g.indptr[x + 1] - g.indptr[x])};
  }

  DEVICE i64 begin(const Graph& g, i64 x) const { return g.split[x]; }

  // By some warps; each lane adds its part to the total.
  template <typename Place>
  DEVICE void visit(const Graph& g, i64 x, i64 begin, i64 end, const Row&, int warp, int warps, const Place& place) {
    const int lane = lane_id(), step = arcs_at_once(end - begin, warps);
    for (i64 base = begin + static_cast<i64>(step) * warp; base < end; base += static_cast<i64>(step) * warps) {
      const bool in = lane < step && base + lane < end;
      const u32 other = in ? g.indices[base + lane] : 0;
      const i64 from = in ? g.indptr[other] : 0;
      const int length = in ? static_cast<int>(g.indptr[other + 1] - from) : 0;
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
        if (lane == 0 && common) total += static_cast<u64>(common) * (common - 1) / 2;
        entries = next_entries;
        size = next_size;
        first = next_first;
      }
    }
  }
};

// Those of the arcs first to last - 1 that lead to the vertices low to high - 1.
extern "C" __global__ void __launch_bounds__(256, 6)
    count_triangles(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 first, i64 last,
                    i64 low, i64 high, i64 size, i64 words, LaunchState* state, const u32* stop, u64* result) {
  LargerArcs larger = {
      indptr + low, indices + indptr[low], split + low, high - low, low, nullptr, nullptr, 0, 0};
  larger.narrow(indptr, num_vertices, first, last);
  Triangles kind = {indptr, first, last, 0};
  const ArcTasks tasks = larger.tasks(size, words, &state->next, stop);
  for_prefixes<false>({indptr, indices, split, nullptr}, larger, tasks, kind);
  finish(state, kind.total, result);
}

// Those whose common edge has its smaller end in first to last - 1.
extern "C" __global__ void __launch_bounds__(256, 6)
    count_diamonds(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 first, i64 last,
                   i64 size, i64 words, LaunchState* state, const u32* stop, u64* result) {
  Diamonds kind = {0};
  for_arcs<false>(Graph{indptr, indices, split, num_vertices}, kind,
                  {indptr[first], indptr[last], size, words, &state->next, stop});
  finish(state, kind.total, result);
}
