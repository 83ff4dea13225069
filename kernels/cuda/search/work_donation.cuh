// The task that a warp works on, and when it gives a part of it away.
#pragma once
#include "search/suffix_count.cuh"
#include "search/task_ring.cuh"

constexpr int kEveryCandidate = 0x7fffffff;
// A part of a row is given away by a warp that has worked on the row several times longer than it took to enter it: the
// taker enters it, too.
constexpr u32 kEntries = 16;

struct WorkDonation : SuffixCount {
  Task task;
  int position[2];
  int current;  // row
  int end[2];   // the candidates of the first two levels end here; 0 outside of the level
  RingSlot* ring;
  TaskControl* control;
  u64 most = 0;  // the search ends once all warps together have found this number; 0: it finds all
  u64* result = nullptr;
  u32 now, since;  // the last look at the clock, and the last one after which work could be given away
  u32 entry, gave;  // what it takes to enter a row of the task; when the row was entered, or a part of it given away

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

  // Add what was found so far to the result of all warps, if a number is wanted; whether that is reached.
  DEVICE bool found_enough() {
    if (most == 0) return false;
    add_result(result, total, estimate);
    total = 0;
    estimate = 0;
    return __shfl_sync(kAll, load_volatile(result), 0) >= most;
  }

  // Give half of the rows away, or else of the candidates of the first level, or else of the second.
  DEVICE void give() {
    Task donation = {current, current + 1, {0, 0}, {kEveryCandidate, kEveryCandidate}};
    int kind = -1;
    const int rows_left = task.row_end - current - 1;
    if (rows_left > 0) {
      kind = 2;
      donation.row = task.row_end - (rows_left + 1) / 2;
      donation.row_end = task.row_end;
    } else if (end[0] - position[0] > 1) {
      kind = 0;
      donation.first[0] = end[0] - (end[0] - position[0]) / 2;
      donation.last[0] = end[0];
    } else if (end[1] - position[1] > 1) {
      kind = 1;
      donation.first[0] = position[0];
      donation.last[0] = position[0] + 1;
      donation.first[1] = end[1] - (end[1] - position[1]) / 2;
      donation.last[1] = end[1];
    }
    if (kind < 0 || (kind < 2 && now - gave < kEntries * entry)) return;
    bool given = false;
    if (lane_id() == 0) {
      const u32 queued = load_volatile(&control->tail) - load_volatile(&control->head);
      if (load_volatile(&control->waiting) > queued) {
        atomicAdd(&control->outstanding, 1u);
        given = push(ring, control, donation);
        if (!given) atomicSub(&control->outstanding, 1u);
      }
    }
    if (!__shfl_sync(kAll, given, 0)) return;
    gave = now;
    if (kind == 2) task.row_end = donation.row;
    if (kind == 1) end[1] = donation.first[1];
    if (kind == 0) end[0] = donation.first[0];
  }
};
