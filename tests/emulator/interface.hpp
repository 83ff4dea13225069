// What compiled kernels call in the emulator's runtime.
#pragma once

struct uint3 {
  unsigned x, y, z;
};

// The kinds of collectives; the lanes of a warp must meet at the same one.
enum Collective : int { SHUFFLE, VOTE, REDUCE, MATCH, SYNC_WARP, SYNC_BLOCK };

enum Reduction : int { ADD, MIN, MAX, SIGNED_MIN, SIGNED_MAX, AND, OR, XOR };

extern "C" {
// Where the running thread is; that stays the same for as long as a kernel's function runs.
uint3 emulator_thread_index() __attribute__((const));
uint3 emulator_block_index() __attribute__((const));
uint3 emulator_block_size() __attribute__((const));
uint3 emulator_grid_size() __attribute__((const));
char* emulator_dynamic_shared() __attribute__((const));
char* emulator_static_shared(unsigned offset) __attribute__((const));

// `line` is where the call stands in the source: all lanes must come from there.
unsigned long long emulator_shuffle(unsigned mask, unsigned long long value, unsigned source, int line);
unsigned emulator_vote(unsigned mask, bool value, int line);
unsigned emulator_reduce(unsigned mask, unsigned value, Reduction reduction, int line);
unsigned emulator_match(unsigned mask, unsigned long long value, int line);
void emulator_sync_warp(unsigned mask, int line);
unsigned emulator_sync_block(bool value, int line);  // gives for how many threads `value` holds

void emulator_atomic(const void* word, unsigned bytes);  // before an atomic operation: checks, lets others run
void emulator_sleep(unsigned nanoseconds);
long long emulator_clock();
[[noreturn]] void emulator_trap(int line);
}
