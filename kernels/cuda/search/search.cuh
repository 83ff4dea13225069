// The depth-first search of one warp, unrolled over the depths and sets of the program.
//
// All lanes hold the same matched vertices and sets; set operations deal their elements to the lanes. Only at the
// last depth, where it has no set operations, each lane holds a candidate of its own (`value[kDepth - 1]`).
#pragma once
#include "search/program.cuh"
#include "search/stack_pool.cuh"
#include "search/task_ring.cuh"

constexpr int kEveryCandidate = 0x7fffffff;
// A part of a row is given away by a warp that has worked on the row for so many times what it took to enter it: the
// taker enters it, too.
constexpr u32 kEntries = 16;

struct GraphView {
  const i64* indptr;
  const u32* indices;
  const i64* split;
  const int* labels;
  const u32* slices;  // u32[vertices, kSliceStride]: where the neighbours of each label begin, counted from the row
};

// What becomes of the elements of a set, 32 at a time: they are only counted, or written one after another. A sink
// returns whether it can take more.
struct CountElements {
  int found = 0;
  DEVICE bool operator()(u32, bool kept) {
    found += __popc(__ballot_sync(kAll, kept));
    return true;
  }
};

struct StoreElements {
  u32* out;
  int found = 0;
  DEVICE bool operator()(u32 x, bool kept) {
    const u32 mask = __ballot_sync(kAll, kept);
    if (kept) out[found + __popc(mask & lanes_before())] = x;
    found += __popc(mask);
    return true;
  }
};

// Pass the members whose presence in the sorted array equals KEEP to a sink.
template <bool KEEP, typename Sink>
PER_SET void combine(const u32* members, int count, const u32* array, int length, Sink& sink) {
  const int lane = lane_id();
  int base = 0;
  for (int i = 0; i < count; i += 32) {
    const int active = min(32, count - i);
    const u32 x = members[i + min(lane, active - 1)];
    const u32 last = __shfl_sync(kAll, x, 31);
    int end = length;
    if (end - base > 128) {
      // Members ascend: one look at 32 pivots bounds the part of the array that these 32 can lie in.
      const int step = (end - base + 31) >> 5;
      const int pivot = base + (lane + 1) * step - 1;
      const bool less = pivot < end && array[pivot] < last;
      end = min(end, base + (__popc(__ballot_sync(kAll, less)) + 1) * step);
    }
    const int at = base + lower_bound(array + base, end - base, x);
    const bool present = at < length && array[at] == x;
    if (!sink(x, lane < active && present == KEEP)) return;
    base = __shfl_sync(kAll, at, 31);
    if (KEEP && base >= length) return;
  }
}

// Pass the elements that carry a label to a sink.
template <typename Sink>
DEVICE void with_label(const u32* array, int length, const int* labels, int label, Sink& sink) {
  const int lane = lane_id();
  for (int i = 0; i < length; i += 32) {
    const u32 x = i + lane < length ? array[i + lane] : 0;
    if (!sink(x, i + lane < length && labels[x] == label)) return;
  }
}

DEVICE bool adjacent(const GraphView& graph, u32 u, u32 v) {
  const i64 begin = graph.indptr[u];
  const int length = static_cast<int>(graph.indptr[u + 1] - begin);
  const u32* row = graph.indices + begin;
  const int at = lower_bound(row, length, v);
  return at < length && row[at] == v;
}

// How many matched vertices lie in each block's set although they must not be counted.
struct Excluded {
  int count[kNumBlocks ? kNumBlocks : 1] = {};
};

// The members of a set come from an adjacency, or from an earlier set that an adjacency is compared with.
struct Operands {
  const u32* array;
  int count;
  const u32* source;
  int size;
};

struct Search {
  GraphView graph;
  const u32* rows;  // u32[kColumns, stride]
  i64 stride;
  const i64* list_begins;   // i64[lists, stride]: where a row's lists begin, counted from graph.indices
  const int* list_lengths;  // int[lists, stride]
  i64 entered;              // the row whose sets are computed
  u32* store;  // this warp's workspace
  i64 room, oriented_room;
  u32* shared_store;      // u32[stored sets, kSharedRoom]
  bool too_long = false;  // a set found no room
  StackPool pool;
  u32* borrowed = nullptr;  // a long stack of the pool

  u32 value[kDepth];
  const u32* members[kNumSets ? kNumSets : 1];
  int length[kNumSets ? kNumSets : 1];
  i64 size[kNumBlocks ? kNumBlocks : 1];
  int good = 0;  // leading columns whose sets are valid
  u64 total = 0;
  double estimate = 0;

  // What is being worked on, and how work is handed over.
  Task task;
  int position[2];
  RingSlot* ring;
  TaskControl* control;
  const u32* stop;
  i64 modulus = 0;  // a prime, if counts are residues
  u64 most = 0;  // the search ends once all warps together have found so many; 0: it finds all
  u64* result = nullptr;
  u32 now, since;  // the last look at the clock, and the last one after which work could be given away
  u32 entry, gave;  // what it takes to enter a row of the task; when the row was entered, or a part of it given away
  bool halted = false;

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

  // Workspace for so many elements of a set: shared memory where they fit, else global; null where they do not fit either.
  template <int S>
  DEVICE u32* stored_at(int most) {
    if constexpr (kPooled) return behind_the_last<S>(most);
    constexpr int plain = stored_before(S, false), narrow = stored_before(S, true);
    if constexpr (kSharedRoom > 0) {
      if (most <= kSharedRoom) return shared_store + (plain + narrow) * kSharedRoom;
    }
    if (most > (oriented(S) ? oriented_room : room)) return nullptr;
    return store + plain * room + narrow * oriented_room;
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

  // --- the counted suffix -----------------------------------------------------------------------------------

  // Measure the blocks whose size becomes known at depth D.
  template <int D, bool LANES, int B = 0>
  DEVICE void measure_blocks() {
    if constexpr (B < kNumBlocks) {
      if constexpr (block_depth(B) == D) {
        constexpr Block block = kBlocks[B];
        constexpr SetOp op = kSets[block.candidates];
        const u32* array = members[block.candidates];
        int count = length[block.candidates];
        if constexpr (!op.size_only) {
          trim<block.below & ~op.below, block.above & ~op.above, LANES>(array, count);
        }
        size[B] = count;
      }
      measure_blocks<D, LANES, B + 1>();
    }
  }

  template <u64 MASK, int D = 0>
  DEVICE bool adjacent_to_all(u32 x) const {
    if constexpr (MASK >> D == 0) {
      return true;
    } else {
      if constexpr (MASK >> D & 1) {
        if (!adjacent(graph, value[D], x)) return false;
      }
      return adjacent_to_all<MASK, D + 1>(x);
    }
  }

  // Find the matched vertices that lie in a block, as far as depth D decides it.
  template <int D, int M = 0>
  DEVICE void find_members(Excluded& excluded) const {
    if constexpr (M < kNumMembers) {
      if constexpr (member_depth(M) == D) {
        constexpr Member member = kMembers[M];
        constexpr Block block = kBlocks[member.block];
        const u32 x = value[member.depth];
        const bool inside = x < smallest<block.below>() && x >= beyond_largest<block.above>();
        if (inside && adjacent_to_all<member.mask>(x)) ++excluded.count[member.block];
      }
      find_members<D, M + 1>(excluded);
    }
  }

  template <int D, bool LANES>
  DEVICE void settle(Excluded& excluded) {
    measure_blocks<D, LANES>();
    find_members<D>(excluded);
  }

  // A number modulo 2^64 or, with residues, a prime below 2^31: times a size, below 2^32, it stays below 2^63.
  DEVICE i64 reduced(i64 number) const {
    if constexpr (kResidues) {
      const i64 rest = number % modulus;
      return rest < 0 ? rest + modulus : rest;
    } else {
      return number;
    }
  }

  template <int T, int C = 1>
  DEVICE void multiply(const Excluded& excluded, i64& product, double& approximate) const {
    if constexpr (C <= kTermWidth) {
      constexpr i64 block = kTerms[T][C];
      if constexpr (block >= 0) {
        const i64 ways = size[block] - excluded.count[block];
        product = reduced(product * ways);
        approximate *= static_cast<double>(ways);
      }
      multiply<T, C + 1>(excluded, product, approximate);
    }
  }

  // Add the number of ways to place the suffix.
  template <int T = 0>
  DEVICE void count_suffix(const Excluded& excluded) {
    if constexpr (T < kNumTerms) {
      constexpr i64 coefficient = kTerms[T][0];
      i64 product = reduced(coefficient);
      double approximate = static_cast<double>(coefficient);
      multiply<T>(excluded, product, approximate);
      total = static_cast<u64>(reduced(static_cast<i64>(total + static_cast<u64>(product))));
      estimate += fabs(approximate);
      count_suffix<T + 1>(excluded);
    }
  }

  // --- the walk ---------------------------------------------------------------------------------------------

  template <u64 MASK, int D = 0>
  DEVICE bool distinct(u32 x) const {
    if constexpr (MASK >> D == 0) {
      return true;
    } else {
      return (!(MASK >> D & 1) || value[D] != x) && distinct<MASK, D + 1>(x);
    }
  }

  // Whether a vertex passes the label, degree and distinctness tests of a level.
  template <int D>
  DEVICE bool admissible(u32 x) const {
    constexpr Level level = kLevels[D];
    if (!distinct<level.distinct>(x)) return false;
    if constexpr (level.label >= 0) {
      if (graph.labels[x] != level.label) return false;
    }
    if constexpr (level.degree > backward_neighbours(level.candidates)) {
      if (graph.indptr[x + 1] - graph.indptr[x] < level.degree) return false;
    }
    return true;
  }

  // The candidates of a level, inside its bounds.
  template <int D>
  DEVICE void candidates(const u32*& list, int& count) const {
    constexpr Level level = kLevels[D];
    constexpr SetOp op = kSets[level.candidates];
    list = members[level.candidates];
    count = length[level.candidates];
    trim<level.below & ~op.below, level.above & ~op.above>(list, count);
  }

  // Match the columns of a row, keeping the sets of the prefix that it shares with the row before.
  template <int D = 0>
  DEVICE bool enter_row(i64 row, bool same = true) {
    if constexpr (D < kColumns) {
      const u32 vertex = rows[D * stride + row];
      same = same && D < good && value[D] == vertex;
      if (!same) {
        good = D;
        entered = row;
        value[D] = vertex;
        if (!run_sets<D>()) return false;
        good = D + 1;
      }
      return enter_row<D + 1>(row, same);
    } else {
      return true;
    }
  }

  template <int D = 0>
  DEVICE void settle_row(Excluded& excluded) {
    if constexpr (D < kColumns) {
      settle<D, false>(excluded);
      settle_row<D + 1>(excluded);
    }
  }

  // Search below the matched vertices of depths 0 to D - 1.
  template <int D>
  DEVICE void expand(const Excluded& excluded) {
    constexpr int slot = D - kColumns;  // the first two levels can be handed over in parts
    const int lane = lane_id();
    const u32* list;
    int count;
    candidates<D>(list, count);
    int at = 0;
    if constexpr (slot < 2) {
      at = task.first[slot];
      count = min(count, task.last[slot]);
      position[slot] = at;
      end[slot] = count;
    }
    for (int base = at; base < count; base += 32) {
      const u32 x = list[min(base + lane, count - 1)];
      const bool ready = base + lane < count && admissible<D>(x);
      if constexpr (D == kDepth - 1 && lanes_at_last_depth()) {
        if (ready) {
          value[D] = x;
          Excluded below = excluded;
          settle<D, true>(below);
          count_suffix(below);
        }
        if constexpr (slot < 2) position[slot] = base + 31;
        if (pause()) return;
        if constexpr (slot < 2) count = end[slot];
      } else {
        u32 mask = __ballot_sync(kAll, ready);
        while (mask) {
          const int bit = __ffs(mask) - 1;
          mask &= mask - 1;
          if constexpr (slot < 2) {
            if (base + bit >= count) break;
            position[slot] = base + bit;
          }
          value[D] = __shfl_sync(kAll, x, bit);
          if (run_sets<D>()) {
            Excluded below = excluded;
            settle<D, false>(below);
            if constexpr (D == kDepth - 1) {
              if (lane == 0) count_suffix(below);
            } else {
              expand<D + 1>(below);
            }
          }
          if (halted || pause()) return;
          if constexpr (slot < 2) count = end[slot];
        }
      }
    }
    if constexpr (slot == 1) end[1] = 0;
  }

  // Work on a task.
  DEVICE void run(const Task& given) {
    task = given;
    end[0] = end[1] = 0;
    position[0] = position[1] = 0;
    now = since = clock_of_warp();
    entry = 0;
    for (current = task.row; current < task.row_end && !halted; ++current) {
      if (enter_row(current)) {
        gave = clock_of_warp();
        entry = max(entry, gave - now);
        Excluded excluded;
        settle_row(excluded);
        if constexpr (kColumns == kDepth) {
          if (lane_id() == 0) count_suffix(excluded);
        } else {
          expand<kColumns>(excluded);
        }
        end[0] = end[1] = 0;
      }
      if constexpr (kPooled) return_stack();
      if (!halted) pause();
    }
  }

  // --- handing over -----------------------------------------------------------------------------------------

  int current;  // row
  int end[2];   // the candidates of the first two levels end here; 0 outside of the level

  DEVICE u32 clock_of_warp() const { return __shfl_sync(kAll, static_cast<u32>(clock64()), 0); }

  // Now and then: give work away if others have none, and see whether to stop. True: return at once.
  DEVICE bool pause() {
    now = clock_of_warp();
    if (now - since < kPatience) return false;
    since = now;
    halted = stop_asked(stop) || found_enough();
    if (!halted) give();
    return halted;
  }

  // Add what was found so far to the result of all warps, where so many are wanted; whether these are found.
  DEVICE bool found_enough() {
    if (most == 0) return false;
    add_result(result, total, estimate);
    total = 0;
    estimate = 0;
    return __shfl_sync(kAll, load_volatile(result), 0) >= most;
  }

  // Give half of the rows away, or else of the candidates of the first level, or else of the second.
  DEVICE void give() {
    Task gift = {current, current + 1, {0, 0}, {kEveryCandidate, kEveryCandidate}};
    int kind = -1;
    const int rows_left = task.row_end - current - 1;
    if (rows_left > 0) {
      kind = 2;
      gift.row = task.row_end - (rows_left + 1) / 2;
      gift.row_end = task.row_end;
    } else if (end[0] - position[0] > 1) {
      kind = 0;
      gift.first[0] = end[0] - (end[0] - position[0]) / 2;
      gift.last[0] = end[0];
    } else if (end[1] - position[1] > 1) {
      kind = 1;
      gift.first[0] = position[0];
      gift.last[0] = position[0] + 1;
      gift.first[1] = end[1] - (end[1] - position[1]) / 2;
      gift.last[1] = end[1];
    }
    if (kind < 0 || (kind < 2 && now - gave < kEntries * entry)) return;
    bool given = false;
    if (lane_id() == 0) {
      const u32 queued = load_volatile(&control->tail) - load_volatile(&control->head);
      if (load_volatile(&control->waiting) > queued) {
        atomicAdd(&control->outstanding, 1u);
        given = push(ring, control, gift);
        if (!given) atomicSub(&control->outstanding, 1u);
      }
    }
    if (!__shfl_sync(kAll, given, 0)) return;
    gave = now;
    if (kind == 2) task.row_end = gift.row;
    if (kind == 1) end[1] = gift.first[1];
    if (kind == 0) end[0] = gift.first[0];
  }
};
