// The matched vertices of a warp's search, and the sets of the program that they determine.
//
// All lanes hold the same matched vertices and sets; set operations deal their elements to the lanes.
#pragma once
#include "search/set_elements.cuh"
#include "search/stack_pool.cuh"

// The members of a set come from an adjacency, or from an earlier set that an adjacency is compared with.
struct Operands {
  const u32* array;
  int count;
  const u32* source;
  int size;
};

struct RowSets {
  GraphView graph;
  const u32* rows;  // u32[kColumns, stride]
  i64 stride;
  const i64* list_begins;   // i64[lists, stride]: where a row's lists begin, counted from graph.indices
  const int* list_lengths;  // int[lists, stride]
  i64 entered;              // the row whose sets are computed
  u32* store;  // this warp's workspace
  i64 capacity, oriented_capacity;
  u32* shared_store;      // u32[stored sets, kSharedRoom]
  bool too_long = false;  // a set found no room
  StackPool pool;
  u32* borrowed = nullptr;  // a long stack of the pool
  const u32* stop;
  bool halted = false;

  u32 value[kDepth];
  const u32* members[kNumSets ? kNumSets : 1];
  int length[kNumSets ? kNumSets : 1];
  int good = 0;  // leading columns whose sets are valid

  // --- bounds -----------------------------------------------------------------------------------------------

  template <u64 MASK, int D = 0>
  DEVICE u32 smallest() const {
    if constexpr (MASK >> D == 0) {
      return kNoVertex;
    } else {
      const u32 rest = smallest<MASK, D + 1>();
      return MASK >> D & 1 ? min(rest, value[D]) : rest;
    }
  }

  // The largest matched vertex of the mask plus one, 0 for an empty mask.
  template <u64 MASK, int D = 0>
  DEVICE u32 beyond_largest() const {
    if constexpr (MASK >> D == 0) {
      return 0;
    } else {
      const u32 rest = beyond_largest<MASK, D + 1>();
      return MASK >> D & 1 ? max(rest, value[D] + 1) : rest;
    }
  }

  // Narrow a sorted array to the bounds; with LANES every lane has bounds of its own.
  template <u64 BELOW, u64 ABOVE, bool LANES = false>
  DEVICE void trim(const u32*& array, int& count) const {
    if constexpr (ABOVE != 0) {
      const u32 low = beyond_largest<ABOVE>();
      const int skipped = LANES ? lower_bound(array, count, low) : warp_lower_bound(array, count, low);
      array += skipped;
      count -= skipped;
    }
    if constexpr (BELOW != 0) {
      const u32 high = smallest<BELOW>();
      count = LANES ? lower_bound(array, count, high) : warp_lower_bound(array, count, high);
    }
  }

  // --- sets -------------------------------------------------------------------------------------------------

  // The part of the adjacency of matched vertex op.adjacent that a set reads: where the rows' lists say, if it has one.
  template <int S>
  DEVICE void adjacency(const u32*& array, int& count) const {
    constexpr SetOp op = kSets[S];
    constexpr u64 own = u64{1} << op.adjacent;
    constexpr bool smaller = (op.below & own) != 0, larger = (op.above & own) != 0;
    constexpr int list = kListOf[S];
    const u32 vertex = value[op.adjacent];
    if constexpr (list >= 0) {
      array = graph.indices + list_begins[list * stride + entered];
      count = list_lengths[list * stride + entered];
    } else {
      const i64 begin = graph.indptr[vertex];
      const i64 end = smaller ? graph.split[vertex] : graph.indptr[vertex + 1];
      const i64 from = larger ? graph.split[vertex] : begin;
      array = graph.indices + from;
      count = static_cast<int>(end - from);
    }
    if constexpr (in_slice(S)) {
      const u32* slice = graph.slices + static_cast<i64>(vertex) * kSliceStride + op.label;
      int from = static_cast<int>(slice[0]), to = static_cast<int>(slice[1]);
      if constexpr (larger) {  // the part begins at the split
        const int skipped = static_cast<int>(graph.split[vertex] - graph.indptr[vertex]);
        from = max(from - skipped, 0);
        to -= skipped;
      }
      array += from;
      count = max(min(to, count) - from, 0);
    }
  }

  // What a set is made of: an adjacency, and the earlier set for those that have one; inside the bounds.
  template <int S, u64 BELOW, u64 ABOVE>
  DEVICE Operands operands() const {
    constexpr SetOp op = kSets[S];
    constexpr u64 own = u64{1} << op.adjacent;
    Operands with = {};
    adjacency<S>(with.array, with.count);
    if constexpr (op.kind == ADJACENCY || op.kind == LABELLED) {
      trim<BELOW & ~(op.below & own), ABOVE & ~(op.above & own)>(with.array, with.count);
    } else {
      // The adjacency itself needs no bounds: what the earlier set holds is inside them.
      constexpr SetOp earlier = kSets[op.source];
      with.source = members[op.source];
      with.size = length[op.source];
      trim<BELOW & ~earlier.below, ABOVE & ~earlier.above>(with.source, with.size);
    }
    return with;
  }

  // Pass the elements of a set to a sink.
  template <int S, typename Sink>
  DEVICE void give_set(const Operands& with, Sink& sink) const {
    constexpr SetOp op = kSets[S];
    if constexpr (op.kind == LABELLED) {
      with_label(with.array, with.count, graph.labels, op.label, sink);
    } else if constexpr (op.kind == SUBTRACT) {
      combine<false>(with.source, with.size, with.array, with.count, sink);
    } else if (with.size <= with.count) {
      combine<true>(with.source, with.size, with.array, with.count, sink);
    } else {
      combine<true>(with.array, with.count, with.source, with.size, sink);
    }
  }

  // Compute a set; false if it must not be empty and is, or if it may be too long for the workspace.
  template <int S>
  PER_SET bool run_set() {
    constexpr SetOp op = kSets[S];
    const Operands with = operands<S, op.below, op.above>();
    if constexpr (op.kind == ADJACENCY) {
      members[S] = with.array;
      length[S] = with.count;
    } else if constexpr (op.size_only) {
      CountElements sink;
      give_set<S>(with, sink);
      length[S] = sink.found;
    } else {
      int most = with.count;
      if constexpr (op.kind == SUBTRACT) most = with.size;
      if constexpr (op.kind == INTERSECT) most = min(with.count, with.size);
      StoreElements sink = {stored_at<S>(most)};
      if (!sink.out) {
        if constexpr (kPooled) {
          halted = true;
        } else {
          too_long = true;
        }
        return false;
      }
      give_set<S>(with, sink);
      __syncwarp();
      members[S] = sink.out;
      length[S] = sink.found;
    }
    return !op.required || length[S] > 0;
  }

  // Workspace for `most` elements of a set: shared memory if they fit, else global; null if they do not fit either.
  template <int S>
  DEVICE u32* stored_at(int most) {
    if constexpr (kPooled) return behind_the_last<S>(most);
    constexpr int plain = stored_before(S, false), narrow = stored_before(S, true);
    if constexpr (kSharedRoom > 0) {
      if (most <= kSharedRoom) return shared_store + (plain + narrow) * kSharedRoom;
    }
    if (most > (oriented(S) ? oriented_capacity : capacity)) return nullptr;
    return store + plain * capacity + narrow * oriented_capacity;
  }

  // Workspace behind the stored set before it, all of which are on the path; null once the host asks to stop.
  template <int S>
  DEVICE u32* behind_the_last(int most) {
    constexpr int before = last_stored(S);
    const u32* at = store;
    if constexpr (before >= 0) at = members[before] + length[before];
    if (borrowed && at >= borrowed) return const_cast<u32*>(at);
    if (at + most <= store + pool.own) return const_cast<u32*>(at);
    if (!borrowed) borrowed = pool.borrow(stop);
    return borrowed;
  }

  // Give a long stack back, and with it the sets of the columns that may lie there.
  DEVICE void return_stack() {
    if (!borrowed) return;
    pool.give_back(borrowed);
    borrowed = nullptr;
    good = 0;
  }

  // Compute the sets that become known at depth D.
  template <int D, int S = first_set(D)>
  DEVICE bool run_sets() {
    if constexpr (S < first_set(D + 1)) {
      if constexpr (S == kEmitted) {
        return run_sets<D, S + 1>();
      } else {
        return run_set<S>() && run_sets<D, S + 1>();
      }
    } else {
      return true;
    }
  }
};
