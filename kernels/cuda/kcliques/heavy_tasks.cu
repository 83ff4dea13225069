// Find the vertices whose work is dealt to whole blocks, before the kernels that do it: in no order.
#include "kcliques/parts.cuh"

// List the tasks of vertices with more than `light` and at most `max_degree` out-neighbours, if some of these belong to the
// arcs [first, last): a task for every part of the out-neighbours, the last one shorter; see rows_of_part. tasks: u32[][2],
// the vertex and the number of the part.
extern "C" __global__ void __launch_bounds__(256)
    find_heavy(const i64* indptr, const i64* split, i64 num_vertices, i64 first, i64 last, i64 light, i64 max_degree,
               i64 whole, i64 work, i64 least, i64 most, u32* tasks, u32* num_tasks) {
  const VertexRange range = vertices_of_slots(indptr, num_vertices, first, last);
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 base = range.begin + static_cast<i64>(blockIdx.x) * blockDim.x + 32 * warp_in_block(); base < range.end;
       base += step) {
    const i64 v = base + lane_id();
    const i64 a = v < range.end ? indptr[v] : 0, z = v < range.end ? split[v] : 0;
    const bool heavy = z - a > light && z - a <= max_degree && max(a, first) < min(z, last);
    if (!__ballot_sync(kAll, heavy)) continue;
    const int rows = rows_of_part(z - a, whole, work, least, most);
    const u32 own = heavy ? static_cast<u32>((z - a + rows - 1) / rows) : 0;
    const u32 upto = warp_prefix_sum(own);
    const u32 at = take(num_tasks, __shfl_sync(kAll, upto, 31)) + upto - own;
    for (u32 i = 0; i < own; ++i) {
      tasks[2 * (at + i)] = static_cast<u32>(v);
      tasks[2 * (at + i) + 1] = i;
    }
  }
}
