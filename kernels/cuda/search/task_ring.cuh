// How busy warps hand work to idle ones: a bounded lock-free ring of tasks.
//
// Rows of a search differ in cost by many orders of magnitude and the heavy ones are not known beforehand, so
// work is split when it turns out to be long: a warp that has worked on for `kPatience` cycles looks whether
// warps are idle, and gives away half of what it still has to do (the time-out of T-DFS, but only on demand).
#pragma once
#include "common.cuh"

// Rows row to row_end - 1; where that is a single row, only a part of its candidates: those at the positions
// first[0] to last[0] - 1 of the first level that is searched, and below a single one of them, only the positions
// first[1] to last[1] - 1 of the second.
struct Task {
  int row, row_end;
  int first[2], last[2];
};

struct RingSlot {
  u32 sequence;  // p: free for the p-th push; p + 1: holds what the p-th push left
  u32 unused;
  Task task;
};

struct TaskControl {
  u32 next_row;     // rows from here on have not been taken yet
  u32 outstanding;  // warps that take rows, and tasks that were handed over and are not finished
  u32 waiting;      // warps without work
  u32 num_rows;     // all rows
  u32 head, tail;  // tasks ever taken from and put into the ring, modulo 2^32
};

static_assert(sizeof(RingSlot) == 4 * kRingSlotWords && sizeof(TaskControl) == 8 * kTaskControlWords);

// The two sides of the ring (after D. Vyukov's bounded queue); one lane calls them.
DEVICE bool push(RingSlot* ring, TaskControl* control, const Task& task) {
  u32 at = load_volatile(&control->tail);
  for (;;) {
    RingSlot* slot = &ring[at % kRingSlots];
    const int ahead = static_cast<int>(load_volatile(&slot->sequence) - at);
    if (ahead < 0) return false;
    if (ahead == 0) {
      const u32 seen = atomicCAS(&control->tail, at, at + 1);
      if (seen == at) {
        // The slot's last reader must be done before the task changes, and the task there before its number.
        __threadfence();
        slot->task = task;
        __threadfence();
        atomicExch(&slot->sequence, at + 1);
        return true;
      }
      at = seen;
    } else {
      at = load_volatile(&control->tail);
    }
  }
}

DEVICE bool pop(RingSlot* ring, TaskControl* control, Task* task) {
  u32 at = load_volatile(&control->head);
  for (;;) {
    RingSlot* slot = &ring[at % kRingSlots];
    const int ahead = static_cast<int>(load_volatile(&slot->sequence) - (at + 1));
    if (ahead < 0) return false;
    if (ahead == 0) {
      const u32 seen = atomicCAS(&control->head, at, at + 1);
      if (seen == at) {
        __threadfence();
        const volatile Task* from = &slot->task;
        task->row = from->row;
        task->row_end = from->row_end;
        for (int level = 0; level < 2; ++level) {
          task->first[level] = from->first[level];
          task->last[level] = from->last[level];
        }
        __threadfence();
        atomicExch(&slot->sequence, at + kRingSlots);
        return true;
      }
      at = seen;
    } else {
      at = load_volatile(&control->head);
    }
  }
}
