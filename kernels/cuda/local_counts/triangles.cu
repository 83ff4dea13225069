// Count triangles in all, or per vertex: those whose arc from the largest vertex to the middle one is one of first to last - 1.
#include "local_counts/triangles.cuh"

extern "C" __global__ void __launch_bounds__(256, 6)
    count_triangles(const i64* indptr, const u32* indices, const i64* split, const i64* places, LARGER_ARCS, i64 first,
                    i64 last, i64 size, i64 words, u32* next, const u32* stop, u64* result) {
  const LargerArcs larger = {larger_ptr, larger_vertices, larger_split, number, base, pairs, number_of_pairs,
                             0, 0};
  Triangles kind = {indptr, first, last, 0};
  for_prefixes<false>({indptr, indices, split, places}, larger, larger.tasks(size, words, next, stop), kind);
  WideSum{kind.total}.add_lanes_to(result);
}

// Counts of vertices, from `first_count` on, as many as there is room for.
struct VertexCounts {
  u64* values;
  u64 first_count, size;
  const i64* indptr;
  i64 first, last;

  DEVICE bool wants(const Prefix& prefix) const {
    const i64 arc = indptr[prefix.v] + prefix.size;
    return arc >= first && arc < last;
  }

  DEVICE void at_entry(const Prefix&, int) const {}
  DEVICE void at_larger(const Prefix& prefix, u32 number) const { add(prefix.v, number); }
  DEVICE void at_own(const Prefix& prefix, u32 number) const { add(prefix.u, number); }
  DEVICE void at_place(const Prefix& prefix, int place, u32 number) const { add(prefix.own[place], number); }

 private:
  DEVICE void add(u64 vertex, u64 number) const {
    if (vertex - first_count < size) atomicAdd(&values[vertex - first_count], number);
  }
};

extern "C" __global__ void __launch_bounds__(256, 6)
    add_triangles(const i64* indptr, const u32* indices, const i64* split, const i64* places, LARGER_ARCS,
                  i64 num_vertices, i64 first, i64 last, i64 size, i64 words, i64 capacity, u32* next, const u32* stop,
                  u64* counts, u64 first_count, u64 num_counts) {
  LargerArcs larger = {larger_ptr, larger_vertices, larger_split, number, base, pairs, number_of_pairs, 0, 0};
  larger.narrow(indptr, num_vertices, first, last);
  TriangleCorners<VertexCounts> kind = {{counts, first_count, num_counts, indptr, first, last},
                                        prefix_bits() + 2 * words,
                                        static_cast<int>(capacity),
                                        0};
  kind.clear();
  for_prefixes<true>({indptr, indices, split, places}, larger, larger.tasks(size, words, next, stop), kind);
}
