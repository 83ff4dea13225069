// Extend rows of partial embeddings by one level, in two passes: count per row, then write.
#include "search.cuh"

// `ends` (inclusive prefix sums of `counts`) is null in the first pass, `out` is only written in the second.
extern "C" __global__ void __launch_bounds__(256, 4)
    extend_rows(const i64* indptr, const u32* indices, const i64* split, const int* labels, const u32* rows,
                i64 stride, i64 num_rows, u32* store, i64 room, i64 oriented_room, i64 rows_at_once, u32* next_row,
                const u32* stop, i64* counts, const i64* ends, u32* out) {
  const int lane = lane_id();
  const i64 warp = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
  Search search;
  search.graph = {indptr, indices, split, labels};
  search.rows = rows;
  search.stride = stride;
  search.store = store + warp * (kStored * room + kOrientedStored * oriented_room);
  search.room = room;
  search.oriented_room = oriented_room;
  for (;;) {
    const i64 begin = take(next_row, static_cast<u32>(rows_at_once));
    if (begin >= num_rows || stop_asked(stop)) break;
    const i64 end = min(begin + rows_at_once, num_rows);
    for (i64 row = begin; row < end; ++row) {
      i64 found = 0;
      if ((!ends || counts[row]) && search.enter_row(row)) {
        const i64 at = ends ? ends[row] - counts[row] : 0;
        const u32* list;
        int count;
        search.candidates<kColumns>(list, count);
        for (int base = 0; base < count; base += 32) {
          const u32 x = list[min(base + lane, count - 1)];
          const bool kept = base + lane < count && search.admissible<kColumns>(x);
          const u32 mask = __ballot_sync(kAll, kept);
          if (ends && kept) out[at + found + __popc(mask & lanes_before())] = x;
          found += __popc(mask);
        }
      }
      if (!ends && lane == 0) counts[row] = found;
    }
  }
}
