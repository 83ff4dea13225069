// Extend rows in two passes, the usual way to know where to write: count per row, then do the same again and write.
#include "search/extend.cuh"

struct CountOutput {
  i64* counts;
  i64 row_found;

  DEVICE bool open() const { return true; }
  DEVICE bool begin_row(i64) {
    row_found = 0;
    return true;
  }
  DEVICE bool append(u32, bool kept) {
    row_found += __popc(__ballot_sync(kAll, kept));
    return true;
  }
  DEVICE void end_row(i64 row, bool too_long) const {
    if (lane_id() == 0) counts[row] = too_long ? kTooLong : row_found;
  }
};

// `ends` are inclusive prefix sums of the positive counts.
struct WriteOutput {
  const i64* counts;
  const i64* ends;
  u32* out;
  i64 at;

  DEVICE bool open() const { return true; }
  DEVICE bool begin_row(i64 row) {
    at = ends[row] - counts[row];
    return counts[row] > 0;
  }
  DEVICE bool append(u32 x, bool kept) {
    const u32 mask = __ballot_sync(kAll, kept);
    if (kept) out[at + __popc(mask & lanes_before())] = x;
    at += __popc(mask);
    return true;
  }
  DEVICE void end_row(i64, bool) const {}
};

extern "C" __global__ void __launch_bounds__(256, 4)
    extend_two_pass(const i64* indptr, const u32* indices, const i64* split, const int* labels, const u32* slices,
                    const u32* rows,
                    i64 stride, const i64* list_begins, const int* list_lengths, const u32* order, i64 num_rows,
                    i64 first, u32* store, i64 capacity, i64 oriented_capacity, i64 rows_at_once, u32* next_row, const u32* stop,
                    i64* counts, const i64* ends, u32* out) {
  const GraphView graph = {indptr, indices, split, labels, slices};
  const ExtensionInput in = {graph, rows, stride, list_begins, list_lengths, order, num_rows, static_cast<u32>(first),
                             store, capacity, oriented_capacity, rows_at_once, next_row, stop};
  if (ends) {
    WriteOutput output = {counts, ends, out, 0};
    extend(in, output);
  } else {
    CountOutput output = {counts, 0};
    extend(in, output);
  }
}
