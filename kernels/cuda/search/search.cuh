// The depth-first search of one warp, unrolled over the depths of the program.
//
// Only at the last depth, where it has no set operations, each lane holds a candidate of its own (`value[kDepth - 1]`).
#pragma once
#include "search/work_donation.cuh"

struct Search : WorkDonation {
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
};
