// What stands for search/task_ring.cuh in host_balance.cu: what warps give away goes to a list, which the host deals out anew.
#pragma once
#include "common.cuh"

// As in search/task_ring.cuh.
struct Task {
  int row, row_end;
  int first[2], last[2];
};

struct RingSlot {
  Task task;
};

struct TaskControl {
  u32 next_task;    // tasks from here on have not been taken yet
  u32 outstanding;  // tasks that were given away
  u32 waiting;      // set by the host: give away whatever you can
  u32 idle;         // warps that have ended
  u32 head, tail;   // the list is from 0 to tail
};

constexpr u32 kListSlots = 1 << 20;

DEVICE bool push(RingSlot* list, TaskControl* control, const Task& task) {
  const u32 at = atomicAdd(&control->tail, 1u);
  if (at < kListSlots) {
    list[at].task = task;
    return true;
  }
  atomicSub(&control->tail, 1u);
  return false;
}
