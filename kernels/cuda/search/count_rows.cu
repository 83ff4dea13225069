// Count the embeddings below rows of partial embeddings.
#include "search/search.cuh"

DEVICE Task shared_task(Task task) {
  task.row = __shfl_sync(kAll, task.row, 0);
  task.row_end = __shfl_sync(kAll, task.row_end, 0);
  for (int level = 0; level < 2; ++level) {
    task.first[level] = __shfl_sync(kAll, task.first[level], 0);
    task.last[level] = __shfl_sync(kAll, task.last[level], 0);
  }
  return task;
}

// Wait for a task that a busy warp hands over; false once no warp can have any more.
DEVICE bool next_task(RingSlot* ring, TaskControl* control, const u32* stop, Task& task) {
  u32 outcome = 0;
  if (lane_id() == 0) {
    atomicAdd(&control->waiting, 1u);
    for (u32 nap = 500; !outcome; nap = min(nap * 2, 16000u)) {
      // In this order: a giver counts its donation as outstanding until it is done.
      const bool over = load_volatile(&control->outstanding) == 0;
      if (pop(ring, control, &task)) {
        outcome = 1;
      } else if (over || load_volatile(stop)) {
        outcome = 2;
      } else {
        __nanosleep(nap);
      }
    }
    atomicSub(&control->waiting, 1u);
  }
  task = shared_task(task);
  return __shfl_sync(kAll, outcome, 0) == 1;
}

// Rows that a warp takes at once, fewer where warps would take less often than so.
constexpr i64 kMostAtOnce = 8, kTakes = 4;

extern "C" __global__ void __launch_bounds__(256, 4)
    count_rows(const i64* indptr, const u32* indices, const i64* split, const int* labels, const u32* slices,
               const u32* rows, i64 stride, const i64* list_begins, const int* list_lengths, u32* store, i64 own, i64 capacity,
               i64 oriented_capacity, u32* lent, i64 longs, RingSlot* ring, TaskControl* control,
               const u32* stop, u64 most, u64 modulus,
               u64* result) {
  const i64 warp = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  const i64 num_rows = control->num_rows;  // another kernel may have chosen them
  const i64 at_once = min(max(num_rows / (warps * kTakes), i64(1)), kMostAtOnce);
  Search search;
  search.graph = {indptr, indices, split, labels, slices};
  search.rows = rows;
  search.stride = stride;
  search.list_begins = list_begins;
  search.list_lengths = list_lengths;
  search.store = store + warp * (kPooled ? own : kStored * capacity + kOrientedStored * oriented_capacity);
  search.capacity = capacity;
  search.oriented_capacity = oriented_capacity;
  if constexpr (kPooled) {
    const i64 size = kStored * capacity + kOrientedStored * oriented_capacity;
    search.pool = {store + warps * own, lent, static_cast<u32>(longs), size, own};
  }
  search.ring = ring;
  search.control = control;
  search.stop = stop;
  search.most = most;
  search.modulus = static_cast<i64>(modulus);
  search.result = result;
  Task task = {0, 0, {0, 0}, {kEveryCandidate, kEveryCandidate}};
  // The loop has one body for both sources of work, so that the search is compiled once.
  bool rows_left = true;
  if (lane_id() == 0) atomicAdd(&control->outstanding, 1u);
  for (;;) {
    if (rows_left) {
      task.row = static_cast<int>(take(&control->next_row, static_cast<u32>(at_once)));
      task.row_end = static_cast<int>(min(task.row + at_once, num_rows));
      rows_left = task.row < num_rows && !stop_asked(stop) && !search.found_enough();
    }
    if (!rows_left) {
      if (lane_id() == 0) atomicSub(&control->outstanding, 1u);
      if (!next_task(ring, control, stop, task)) break;
    }
    search.run(task);
  }
  // Workspace has room for the longest sets; a count without them must not pass for one.
  add_result(result, search.total, search.too_long ? __longlong_as_double(0x7ff8000000000000ll) : search.estimate);
}
