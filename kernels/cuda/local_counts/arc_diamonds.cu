// Count the triangles of arcs, and the pairs of them that share an edge: diamonds.
#include "local_counts/triangles.cuh"

// Counts of arcs from `first` on, as many as there is room for.
struct CountRange {
  u32* values;
  u64 first, size;
};

// Counts of the arcs to smaller neighbours: those of a vertex begin at starts[vertex]. `largest`: at both arcs of the largest
// vertex of a triangle; `smaller`: at the third one. If `narrow`, a count has 16 bits, but for those of the first
// `wide_arcs` arcs, which are in `wide` with 32.
struct ArcCounts {
  const i64* starts;
  CountRange largest, smaller;
  u32* wide;
  u64 wide_arcs;
  bool narrow;

  DEVICE void add(const CountRange& range, i64 arc, u32 number) const {
    const u64 at = static_cast<u64>(arc) - range.first;
    if (at >= range.size) return;
    if (!narrow) {
      atomicAdd(&range.values[at], number);
    } else if (static_cast<u64>(arc) < wide_arcs) {
      atomicAdd(&wide[arc], number);
    } else {
      atomicAdd(&range.values[at >> 1], number << (at & 1) * 16);
    }
  }

  DEVICE bool wants(const Prefix&) const { return true; }
  DEVICE void at_entry(const Prefix& prefix, int j) const { add(largest, starts[prefix.v] + j, 1); }
  DEVICE void at_larger(const Prefix& prefix, u32 number) const { add(largest, starts[prefix.v] + prefix.size, number); }
  DEVICE void at_own(const Prefix&, u32) const {}
  DEVICE void at_place(const Prefix& prefix, int place, u32 number) const {
    add(smaller, starts[prefix.u] + place, number);
  }
};

// Add the triangles of arcs to larger vertices, to those from `low` on.
extern "C" __global__ void __launch_bounds__(256, 6)
    add_triangles(const i64* indptr, const u32* indices, const i64* split, const i64* places, LARGER_ARCS, i64 low,
                  i64 size, i64 words, i64 capacity, u32* next, const u32* stop, const i64* starts, u32* largest,
                  u64 first_largest, u64 num_largest, u32* smaller, u64 first_smaller, u64 num_smaller, u32* wide,
                  u64 wide_arcs, i64 narrow) {
  const LargerArcs larger = {larger_ptr, larger_vertices, larger_split, number, base, pairs, number_of_pairs,
                             low, 0};
  TriangleCorners<ArcCounts> kind = {
      {starts, {largest, first_largest, num_largest}, {smaller, first_smaller, num_smaller}, wide, wide_arcs, narrow != 0},
      prefix_bits() + 2 * words,
      static_cast<int>(capacity),
      0};
  kind.clear();
  for_prefixes<true>({indptr, indices, split, places}, larger, larger.tasks(size, words, next, stop), kind);
}

// Add the pairs of triangles of each of the arcs.
extern "C" __global__ void __launch_bounds__(256) add_pairs(const u32* counts, i64 number, i64 narrow, u64* result) {
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  WideSum sum;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < number; i += threads) {
    const u64 triangles = narrow ? reinterpret_cast<const unsigned short*>(counts)[i] : counts[i], pairs = triangles ? triangles * (triangles - 1) / 2 : 0;
    sum.add(pairs);
  }
  sum.add_lanes_to(result);
}
