// Extend rows of partial embeddings by one level: what the ways of writing the new vertices share.
#pragma once
#include "search/search.cuh"

struct ExtensionInput {
  GraphView graph;
  const u32* rows;  // u32[kColumns, stride]
  i64 stride;
  const i64* list_begins;
  const int* list_lengths;
  const u32* order;  // the rows to extend, u32[num_rows]; null: the first num_rows
  i64 num_rows;
  u32 first;  // row 0 is extended by vertices from this one on
  u32* store;
  i64 capacity, oriented_capacity;
  i64 rows_at_once;  // taken by a warp together, so that it meets rows of one prefix
  u32* next_row;
  const u32* stop;
};

// Pass the admissible candidates of a row to the output.
template <typename Output>
struct EmitCandidates {
  const Search& search;
  Output& output;
  u32 first;
  DEVICE bool operator()(u32 x, bool kept) {
    return output.append(x, kept && x >= first && search.admissible<kColumns>(x));
  }
};

// Pass on the elements of a set, as far as the bounds of the level let them be candidates.
template <int S, typename Sink>
DEVICE void emit_set(const Search& search, Sink& sink) {
  constexpr SetOp op = kSets[S];
  constexpr Level level = kLevels[kColumns];
  search.give_set<S>(search.operands<S, op.below | level.below, op.above | level.above>(), sink);
}

// Extend rows until there are none left, or no room.
template <typename Output>
DEVICE void extend(const ExtensionInput& in, Output& output) {
  const int lane = lane_id();
  const i64 warp = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
  Search search;
  search.graph = in.graph;
  search.rows = in.rows;
  search.stride = in.stride;
  search.list_begins = in.list_begins;
  search.list_lengths = in.list_lengths;
  search.store = in.store + warp * (kStored * in.capacity + kOrientedStored * in.oriented_capacity);
  search.capacity = in.capacity;
  search.oriented_capacity = in.oriented_capacity;
  search.shared_store = dynamic_shared + warp_in_block() * (kStored + kOrientedStored) * kSharedRoom;
  while (output.open()) {
    const i64 begin = take(in.next_row, static_cast<u32>(in.rows_at_once));
    if (begin >= in.num_rows || stop_asked(in.stop)) return;
    const i64 end = min(begin + in.rows_at_once, in.num_rows);
    for (i64 i = begin; i < end; ++i) {
      const i64 row = in.order ? in.order[i] : i;
      if (!output.begin_row(row)) continue;
      if constexpr (!kGrouped) search.good = 0;
      search.too_long = false;
      if (search.enter_row(row)) {
        EmitCandidates<Output> emit = {search, output, row == 0 ? in.first : 0};
        if constexpr (kEmitted >= 0) {
          search.entered = row;
          emit_set<kEmitted>(search, emit);
        } else {
          const u32* list;
          int count;
          search.candidates<kColumns>(list, count);
          for (int base = 0; base < count; base += 32) {
            if (!emit(list[min(base + lane, count - 1)], base + lane < count)) break;
          }
        }
      }
      output.end_row(row, search.too_long);
    }
  }
}
