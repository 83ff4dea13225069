// Count triangles in all, or per vertex; only of those in a range, if asked for.
#include "list_pairs.cuh"
#include "triangles.cuh"

extern "C" __global__ void __launch_bounds__(256, 6)
    count_pairs(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices, i64 first,
                i64 last, i64 low, i64 high, i64 size, i64 words, u32* next, const u32* stop, u64* result) {
  const Rows graph = {indptr, indices, split, places};
  add_parts(result, pairs_of_lists(graph, num_vertices, PairTasks{first, last, low, high, size, words, next, stop}));
}

extern "C" __global__ void __launch_bounds__(256, 2)
    add_light(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices,
              i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u64* counts, u64 first_count,
              u64 num_counts) {
  light_vertices<VertexCounts>({indptr, indices, split, places}, num_vertices, first, last, {low, high}, next, stop,
                            {counts, first_count, num_counts});
}

extern "C" __global__ void __launch_bounds__(256, 2)
    add_heavy(const i64* indptr, const u32* indices, const i64* split, const i64* places, const u32* tasks,
              const u32* num_tasks, i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u64* counts,
              u64 first_count, u64 num_counts) {
  heavy_vertices<VertexCounts>({indptr, indices, split, places}, tasks, num_tasks, first, last, {low, high}, next, stop,
                            {counts, first_count, num_counts});
}
