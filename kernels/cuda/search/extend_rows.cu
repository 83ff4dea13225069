// Extend rows in one pass (GAMMA, Optimization 1): warps write what they find to blocks from a pool, and take another
// block when one is full. Rows for which no block is left are not extended; the host empties the pool and goes on.
#include "search/block_pool.cuh"
#include "search/extend.cuh"

// What the host reads, besides the number of blocks that were requested.
struct Tally {
  u64 found;     // new vertices of all rows that are done
  u64 done;      // rows
  u64 too_long;  // rows with a set that may not fit the workspace
};

struct BlockOutput {
  BlockPool pool;
  Tally* tally;
  u64 enough;      // no more rows are begun after this number of new vertices
  i64* counts;
  u32* starts;     // where each row's new vertices begin
  BlockCursor at;  // where this warp writes
  i64 row_found;
  bool exhausted;
  u32 done, too_long_rows;  // rows of this warp

  DEVICE bool open() {
    if (exhausted) return false;
    u32 closed = 0;
    if (lane_id() == 0) closed = load_volatile(pool.taken) > pool.num_blocks || load_volatile(&tally->found) >= enough;
    if (__shfl_sync(kAll, closed, 0)) return false;
    if (at.block == kNoBlock) exhausted = !pool.grow(at);
    return !exhausted;
  }

  DEVICE bool begin_row(i64 row) {
    if (exhausted) return false;
    row_found = 0;
    if (lane_id() == 0) starts[row] = at.packed();
    return true;
  }

  DEVICE bool append(u32 x, bool kept) {
    const u32 mask = __ballot_sync(kAll, kept);
    exhausted = !pool.append(at, x, kept, mask);
    row_found += __popc(mask);
    return !exhausted;
  }

  DEVICE void end_row(i64 row, bool too_long) {
    if (exhausted || lane_id() != 0) return;
    counts[row] = too_long ? kTooLong : row_found;
    too_long ? ++too_long_rows : ++done;
    if (!too_long && row_found) atomicAdd(&tally->found, static_cast<u64>(row_found));
  }

  DEVICE void finish() {
    if (lane_id() != 0) return;
    if (done) atomicAdd(&tally->done, static_cast<u64>(done));
    if (too_long_rows) atomicAdd(&tally->too_long, static_cast<u64>(too_long_rows));
  }
};

extern "C" __global__ void __launch_bounds__(256, 4)
    extend_rows(const i64* indptr, const u32* indices, const i64* split, const int* labels, const u32* slices,
                const u32* rows,
                i64 stride, const i64* list_begins, const int* list_lengths, const u32* order, i64 num_rows,
                i64 first, u32* store, i64 capacity, i64 oriented_capacity, i64 rows_at_once, u32* next_row, const u32* stop,
                u32* blocks, u32* follows, u32* taken, i64 num_blocks, Tally* tally, i64 enough, i64* counts, u32* starts) {
  const GraphView graph = {indptr, indices, split, labels, slices};
  BlockOutput output = {{blocks, follows, taken, static_cast<u32>(num_blocks)}, tally, static_cast<u64>(enough),
                        counts, starts, {kNoBlock, kBlockValues}, 0, false, 0, 0};
  extend({graph, rows, stride, list_begins, list_lengths, order, num_rows, static_cast<u32>(first), store, capacity,
          oriented_capacity, rows_at_once, next_row, stop},
         output);
  output.finish();
}
