// Count triangles in all, or per vertex; only of those in a range, if asked for.
#include "triangles.cuh"

extern "C" __global__ void __launch_bounds__(256, 4)
    count_light(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices,
                i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u64* result) {
  light_vertices<NoCounts>({indptr, indices, split, places}, num_vertices, first, last, {low, high}, next, stop, result,
                        {});
}

extern "C" __global__ void __launch_bounds__(256, 4)
    count_heavy(const i64* indptr, const u32* indices, const i64* split, const i64* places, const u32* tasks,
                const u32* num_tasks, i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u64* result) {
  heavy_vertices<NoCounts>({indptr, indices, split, places}, tasks, num_tasks, first, last, {low, high}, next, stop, result,
                        {});
}

extern "C" __global__ void __launch_bounds__(256, 2)
    add_light(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices,
              i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u64* counts, u64 first_count,
              u64 num_counts) {
  light_vertices<VertexCounts>({indptr, indices, split, places}, num_vertices, first, last, {low, high}, next, stop, nullptr,
                       {counts, first_count, num_counts});
}

extern "C" __global__ void __launch_bounds__(256, 2)
    add_heavy(const i64* indptr, const u32* indices, const i64* split, const i64* places, const u32* tasks,
              const u32* num_tasks, i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u64* counts,
              u64 first_count, u64 num_counts) {
  heavy_vertices<VertexCounts>({indptr, indices, split, places}, tasks, num_tasks, first, last, {low, high}, next, stop, nullptr,
                       {counts, first_count, num_counts});
}
