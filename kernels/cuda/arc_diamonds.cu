// Count the triangles of arcs, and the pairs of them that share an edge: diamonds.
#include "triangles.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    add_light(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices, i64 first,
              i64 last, i64 low, i64 high, u32* next, const u32* stop, u32* counts, u64 first_count, u64 num_counts,
              i64 largest, i64 smaller) {
  light_vertices<ArcCounts>({indptr, indices, split, places}, num_vertices, first, last, {low, high}, next, stop,
                            {counts, first_count, num_counts, largest != 0, smaller != 0});
}

extern "C" __global__ void __launch_bounds__(256, 2)
    add_heavy(const i64* indptr, const u32* indices, const i64* split, const i64* places, const u32* tasks,
              const u32* num_tasks, i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u32* counts,
              u64 first_count, u64 num_counts, i64 largest, i64 smaller) {
  heavy_vertices<ArcCounts>({indptr, indices, split, places}, tasks, num_tasks, first, last, {low, high}, next, stop,
                            {counts, first_count, num_counts, largest != 0, smaller != 0});
}

// Add the pairs of triangles of each of the arcs.
extern "C" __global__ void __launch_bounds__(256) add_pairs(const u32* counts, i64 number, u64* parts) {
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  u64 low = 0, high = 0;  // halves of the pairs, which are added apart: 2^32 arcs of 2^31 pairs fit
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < number; i += threads) {
    const u64 triangles = counts[i], pairs = triangles ? triangles * (triangles - 1) / 2 : 0;
    low += pairs & 0xffffffffull;
    high += pairs >> 32;
  }
  low = warp_sum(low);
  high = warp_sum(high);
  if (lane_id() == 0 && low) atomicAdd(&parts[0], low);
  if (lane_id() == 0 && high) atomicAdd(&parts[1], high);
}
