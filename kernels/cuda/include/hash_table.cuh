// Sets of vertices in shared memory: open addressing, at most half full.
#pragma once
#include "common.cuh"

// Smallest table (a power of two, at least 32) with `share` slots per element.
DEVICE u32 table_slots(u32 elements, u32 share) {
  const u32 wanted = max(elements * share, 32u);
  return 1u << (32 - __clz(wanted - 1));
}

DEVICE u32 first_slot(u32 key, u32 slots) { return (key * 2654435769u) >> (__clz(slots) + 1); }

// Slot of `key`, which is inserted if it is not there; lanes may insert at the same time.
DEVICE u32 insert(u32* table, u32 slots, u32 key) {
  u32 slot = first_slot(key, slots);
  for (;;) {
    const u32 found = atomicCAS(&table[slot], kNoVertex, key);
    if (found == kNoVertex || found == key) return slot;
    slot = (slot + 1) & (slots - 1);
  }
}

// Slot of `key`, or `slots` where it is not in the table.
DEVICE u32 find(const u32* table, u32 slots, u32 key) {
  u32 slot = first_slot(key, slots);
  for (;;) {
    const u32 found = table[slot];
    if (found == key) return slot;
    if (found == kNoVertex) return slots;
    slot = (slot + 1) & (slots - 1);
  }
}
