// Count the embeddings below tasks that the host has dealt out: a warp without any ends, and waits for no other.
#include "search/search.cuh"

extern "C" __global__ void __launch_bounds__(256, 4)
    count_tasks(const i64* indptr, const u32* indices, const i64* split, const int* labels, const u32* rows, i64 stride,
                const Task* tasks, i64 num_tasks, u32* store, i64 capacity, i64 oriented_capacity, RingSlot* list,
                TaskControl* control, const u32* stop, u64* result) {
  const i64 warp = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
  Search search;
  search.graph = {indptr, indices, split, labels};
  search.rows = rows;
  search.stride = stride;
  search.store = store + warp * (kStored * capacity + kOrientedStored * oriented_capacity);
  search.capacity = capacity;
  search.oriented_capacity = oriented_capacity;
  search.ring = list;
  search.control = control;
  search.stop = stop;
  for (;;) {
    const u32 number = take(&control->next_task, 1);
    if (number >= num_tasks || stop_asked(stop)) break;
    search.run(tasks[number]);
  }
  add_result(result, search.total, search.too_long ? __longlong_as_double(0x7ff8000000000000ll) : search.estimate);
  __syncwarp();
  if (lane_id() == 0) atomicAdd(&control->idle, 1u);
}
