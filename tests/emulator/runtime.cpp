// The emulator's runtime: every thread of a grid is a fiber, and all of them run on one thread of the host.
//
// A lane runs until it reaches a collective; it leaves its operand and lets the next lane of its warp run, and the
// last one to arrive goes on. All blocks are alive at once: warps take turns after a number of collectives, and where
// kernels wait for each other (atomics, volatile reads, naps). With a seed, lanes and warps take turns at random.
//
// The kernels are compiled with the hooks of -fsanitize=thread, which are defined here: every access to memory is
// checked before it happens.
#include <link.h>

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <utility>
#include <vector>

#include "fiber.hpp"
#include "interface.hpp"
#include "memory.hpp"

namespace {

using u64 = unsigned long long;

constexpr unsigned kAll = ~0u;
constexpr int kTurn = 256;  // collectives, or a few times fewer atomics and volatile reads, until others take a turn
constexpr int kWaits = 8;

struct Warp;

struct Lane {
  uint3 thread, block;
  void* saved;  // stack pointer while it does not run
  char* stack;
  Warp* warp;
  unsigned number;
};

struct Block {
  char* shared = nullptr;
  Address shared_bytes = 0, static_bytes = 0;  // static shared memory comes first
  unsigned live = 0, arrived = 0;  // warps
  int line = 0;
  unsigned count = 0, result = 0;
  std::vector<Warp*> waiting;
};

struct Warp {
  Block* block;
  Lane* lanes[32];
  Lane* resume;
  unsigned live = kAll, arrived = 0;
  unsigned generation = 0;
  Collective kind = SYNC_WARP;
  int line = 0;
  u64 operands[2][32];
  unsigned together[2];  // what a vote or reduction gives; like the operands, by the parity of the generation
};

DeviceMemory memory;
Stacks stacks;

// The launch that runs.
Lane* current;
void* scheduler;
uint3 block_size, grid_size;
void (*kernel)(void**);
void** arguments;
std::vector<Warp*> ready;
char* module_begin;
char* module_end;
bool shuffled;
u64 state;  // of the random numbers
u64 ticks;
int turn;
bool failed;
char message[2048];
Address failed_at, failed_address;  // code and data of a failed access

u64 next_random() {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

// One of the bits of a mask that has some: the next one after `after`, or any.
inline unsigned choose(unsigned mask, unsigned after) {
  const unsigned next = (after + 1) & 31;
  if (!shuffled && mask >> next & 1) return next;
  if (shuffled) {
    for (unsigned skip = next_random() % __builtin_popcount(mask); skip; --skip) mask &= mask - 1;
    return __builtin_ctz(mask);
  }
  const unsigned later = mask & (kAll << next);
  return __builtin_ctz(later ? later : mask);
}

void new_turn() { turn = shuffled ? 1 + next_random() % kTurn : kTurn; }

// Give up the launch; what its threads left is forgotten.
[[noreturn]] void fail(const char* format, ...) {
  int used = snprintf(message, sizeof message, "block %u, thread %u: ", current->block.x, current->thread.x);
  va_list rest;
  va_start(rest, format);
  vsnprintf(message + used, sizeof message - used, format, rest);
  va_end(rest);
  failed = true;
  void* nowhere;
  emulator_switch(&nowhere, scheduler);
  __builtin_unreachable();
}

void run(Lane* lane) {
  Lane* before = current;
  if (lane == before) return;
  current = lane;
  emulator_switch(&before->saved, lane->saved);
}

// Let other warps run, and then a lane of this warp that can.
void yield() {
  Warp* warp = current->warp;
  warp->resume = warp->lanes[choose(warp->live & ~warp->arrived, current->number)];
  ready.push_back(warp);
  emulator_switch(&current->saved, scheduler);
}

void take_turns(int cost) {
  turn -= cost;
  if (turn <= 0) yield();
}

void release(Block* block) {
  block->result = block->count;
  block->count = block->arrived = 0;
  ready.insert(ready.end(), block->waiting.begin(), block->waiting.end());
  block->waiting.clear();
}

// The last lane of a warp has come to the block's barrier.
void wait_for_block(Warp* warp, int line) {
  Block* block = warp->block;
  if (block->arrived && block->line != line)
    fail("warps wait at different barriers: lines %d and %d", block->line, line);
  block->line = line;
  for (int i = 0; i < 32; ++i) block->count += warp->operands[warp->generation & 1][i] != 0;
  if (++block->arrived == block->live) {
    release(block);
  } else {
    warp->resume = current;
    block->waiting.push_back(warp);
    emulator_switch(&current->saved, scheduler);
  }
}

const char* kNames[] = {"shuffle", "vote", "reduction", "match", "barrier of a warp", "barrier of a block"};

unsigned combine(unsigned a, unsigned b, Reduction reduction) {
  switch (reduction) {
    case ADD: return a + b;
    case MIN: return a < b ? a : b;
    case MAX: return a > b ? a : b;
    case SIGNED_MIN: return int(a) < int(b) ? a : b;
    case SIGNED_MAX: return int(a) > int(b) ? a : b;
    case AND: return a & b;
    case OR: return a | b;
    case XOR: return a ^ b;
  }
  __builtin_unreachable();
}

// Leave an operand and wait for the other lanes; gives which of the warp's two sets of operands it was.
unsigned meet(Collective kind, unsigned mask, u64 operand, int line, Reduction reduction = OR) {
  Warp* warp = current->warp;
  if (mask != kAll) fail("line %d: a %s names the lanes %08x instead of all", line, kNames[kind], mask);
  if (warp->live != kAll)
    fail("line %d: a %s, but of the lanes of this warp only %08x have not returned", line, kNames[kind], warp->live);
  if (!warp->arrived) {
    warp->kind = kind;
    warp->line = line;
  } else if (warp->kind != kind || warp->line != line) {
    fail("lanes of a warp are at different collectives: a %s in line %d, a %s in line %d", kNames[warp->kind],
         warp->line, kNames[kind], line);
  }
  const unsigned parity = warp->generation & 1;
  warp->operands[parity][current->number] = operand;
  unsigned& together = warp->together[parity];
  together = warp->arrived ? combine(together, unsigned(operand), reduction) : unsigned(operand);
  warp->arrived |= 1u << current->number;
  if (warp->arrived != kAll) {
    run(warp->lanes[choose(~warp->arrived, current->number)]);
    return parity;
  }
  if (kind == SYNC_BLOCK) wait_for_block(warp, line);
  warp->arrived = 0;
  ++warp->generation;
  ticks += 32;
  take_turns(1);
  return parity;
}

// A lane begins here, on a stack of its own.
void live() {
  kernel(arguments);
  Warp* warp = current->warp;
  if (warp->arrived)
    fail("returned while lanes %08x of its warp wait at a %s in line %d", warp->arrived, kNames[warp->kind], warp->line);
  warp->live &= ~(1u << current->number);
  if (warp->live) {
    run(warp->lanes[choose(warp->live, current->number)]);
  } else {
    Block* block = warp->block;
    if (--block->live && block->arrived == block->live) release(block);
    void* nowhere;
    emulator_switch(&nowhere, scheduler);
  }
  __builtin_unreachable();
}

// Run warps until all have returned; false where they cannot go on.
bool schedule(double seconds, const std::vector<Block>& blocks) {
  const auto began = std::chrono::steady_clock::now();
  std::size_t at = 0;  // ready[0:at] have had their turn
  for (u64 round = 1; !failed; ++round) {
    if (at == ready.size() && at == 0) break;
    if (shuffled) {
      std::swap(ready[next_random() % ready.size()], ready.back());
      current = ready.back()->resume;
      ready.pop_back();
    } else {
      current = ready[at++]->resume;
    }
    new_turn();
    emulator_switch(&scheduler, current->saved);
    if (at > 4096 || at == ready.size()) {
      ready.erase(ready.begin(), ready.begin() + at);
      at = 0;
    }
    if (round % 4096 == 0 &&
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() > seconds) {
      snprintf(message, sizeof message, "the kernel has not ended after %.0f seconds", seconds);
      return false;
    }
  }
  if (failed) return false;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (!blocks[b].live) continue;
    snprintf(message, sizeof message, "block %zu: %u of %u warps wait at the barrier in line %d, the others never come", b,
             blocks[b].arrived, blocks[b].live, blocks[b].line);
    return false;
  }
  return true;
}

int find_module(dl_phdr_info* info, size_t, void* function) {
  char *begin = nullptr, *end = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    char* at = reinterpret_cast<char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (!begin || at < begin) begin = at;
    if (at + info->dlpi_phdr[i].p_memsz > end) end = at + info->dlpi_phdr[i].p_memsz;
  }
  if (function < begin || function >= end) return 0;
  module_begin = begin;
  module_end = end;
  return 1;
}

[[noreturn]] void fail_access(Address address, unsigned bytes, const char* what, Address code) {
  failed_at = code - 1 - reinterpret_cast<Address>(module_begin);
  failed_address = address;
  const Block* block = current->warp->block;
  Address length = 0;
  const Address start = memory.nearest(address, &length);
  const Address into_shared = address - reinterpret_cast<Address>(block->shared);
  if (into_shared < block->shared_bytes + 4096) {
    failed_address = 0;
    fail("%s of %u bytes at byte %lld of %llu bytes of dynamic shared memory", what, bytes,
         static_cast<long long>(into_shared - block->static_bytes), u64(block->shared_bytes - block->static_bytes));
  } else if (memory.in_space(address) && start) {
    fail("%s of %u bytes at byte %llu of an allocation of %llu bytes", what, bytes, u64(address - start), u64(length));
  }
  fail("%s of %u bytes at %#llx, which is no memory of the device", what, bytes, u64(address));
}

__attribute__((noinline)) void check_elsewhere(Address address, unsigned bytes, const char* what, void* code) {
  if (!current) return;
  const Block* block = current->warp->block;
  const Address into_shared = address - reinterpret_cast<Address>(block->shared);
  const Address into_module = address - reinterpret_cast<Address>(module_begin);
  if (into_shared < block->shared_bytes && into_shared + bytes <= block->shared_bytes) return;
  if (into_module < static_cast<Address>(module_end - module_begin)) return;
  if (memory.on_host(address, bytes)) return;
  fail_access(address, bytes, what, reinterpret_cast<Address>(code));
}

inline bool on_stack(Address address) {
  return current && address - reinterpret_cast<Address>(current->stack) < Stacks::kUsable;
}

// Shared memory is no part of what the map says is valid: it belongs to one block.
inline void check(const void* word, unsigned bytes, const char* what, void* code) {
  const Address address = reinterpret_cast<Address>(word);
  if (memory.holds(address, bytes) || on_stack(address)) return;
  check_elsewhere(address, bytes, what, code);
}

// Variables on a stack are exempt: the compiler joins stores to neighbouring ones, whatever their addresses.
inline void check_aligned(const void* word, unsigned bytes, const char* what, void* code) {
  if (reinterpret_cast<Address>(word) % bytes && current && !on_stack(reinterpret_cast<Address>(word)))
    fail_access(reinterpret_cast<Address>(word), bytes, "a misaligned access", reinterpret_cast<Address>(code));
  check(word, bytes, what, code);
}

}  // namespace

extern "C" {

uint3 emulator_thread_index() { return current->thread; }
uint3 emulator_block_index() { return current->block; }
uint3 emulator_block_size() { return block_size; }
uint3 emulator_grid_size() { return grid_size; }
char* emulator_dynamic_shared() { return current->warp->block->shared + current->warp->block->static_bytes; }
char* emulator_static_shared(unsigned offset) { return current->warp->block->shared + offset; }

unsigned long long emulator_shuffle(unsigned mask, unsigned long long value, unsigned source, int line) {
  const unsigned parity = meet(SHUFFLE, mask, value, line);
  return current->warp->operands[parity][source & 31];
}

unsigned emulator_vote(unsigned mask, bool value, int line) {
  const unsigned parity = meet(VOTE, mask, static_cast<u64>(value) << current->number, line);
  return current->warp->together[parity];
}

unsigned emulator_reduce(unsigned mask, unsigned value, Reduction reduction, int line) {
  const unsigned parity = meet(REDUCE, mask, value, line, reduction);
  return current->warp->together[parity];
}

unsigned emulator_match(unsigned mask, unsigned long long value, int line) {
  const unsigned parity = meet(MATCH, mask, value, line);
  const u64* all = current->warp->operands[parity];
  unsigned bits = 0;
  for (int i = 0; i < 32; ++i) bits |= unsigned(all[i] == value) << i;
  return bits;
}

void emulator_sync_warp(unsigned mask, int line) { meet(SYNC_WARP, mask, 0, line); }

unsigned emulator_sync_block(bool value, int line) {
  meet(SYNC_BLOCK, kAll, value, line);
  return current->warp->block->result;
}

void emulator_atomic(const void* word, unsigned bytes) {
  check_aligned(word, bytes, "an atomic operation", __builtin_return_address(0));
  take_turns(kTurn / kWaits / 4);
}

void emulator_sleep(unsigned nanoseconds) {
  ticks += nanoseconds;
  yield();
}

long long emulator_clock() { return static_cast<long long>(++ticks); }

void emulator_trap(int line) { fail("line %d: the kernel stopped itself", line); }

// --- the hooks of the compiler --------------------------------------------------------------------------------------

#define HOOKS(n)                                                                                     \
  void __tsan_read##n(void* p) { check_aligned(p, n, "a read", __builtin_return_address(0)); }       \
  void __tsan_write##n(void* p) { check_aligned(p, n, "a write", __builtin_return_address(0)); }     \
  void __tsan_unaligned_read##n(void* p) { check(p, n, "a read", __builtin_return_address(0)); }     \
  void __tsan_unaligned_write##n(void* p) { check(p, n, "a write", __builtin_return_address(0)); }   \
  void __tsan_volatile_read##n(void* p) {                                                            \
    check_aligned(p, n, "a read", __builtin_return_address(0));                                      \
    if (current) take_turns(kTurn / kWaits);                                                         \
  }                                                                                                  \
  void __tsan_volatile_write##n(void* p) { check_aligned(p, n, "a write", __builtin_return_address(0)); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void* p, unsigned long n) { check(p, n, "a read", __builtin_return_address(0)); }
void __tsan_write_range(void* p, unsigned long n) { check(p, n, "a write", __builtin_return_address(0)); }
void __tsan_init() {}

// --- what Python calls ----------------------------------------------------------------------------------------------

int emulator_usable() { return memory.usable(); }
Address emulator_allocate(Address bytes) { return memory.allocate(bytes); }
void emulator_release(Address start) { memory.release(start); }
void emulator_add_host(Address start, Address bytes) { memory.add_host(start, bytes); }
void emulator_remove_host(Address start) { memory.remove_host(start); }

// Run a grid; gives null, or what went wrong. Not for two threads of the host at a time.
//
// `code`: where in the module a bad access happened, 0 if that is not it; `data`: the address, and the start of the
// allocation at or before it.
const char* emulator_launch(void (*function)(void**), void** given, unsigned blocks, unsigned threads,
                            unsigned dynamic_bytes, unsigned static_bytes, u64 seed, double seconds, Address* code,
                            Address* data) {
  kernel = function;
  arguments = given;
  block_size = {threads, 1, 1};
  grid_size = {blocks, 1, 1};
  shuffled = seed != 0;
  state = seed * 0x9e3779b97f4a7c15 | 1;
  failed = false;
  failed_at = failed_address = 0;
  ready.clear();
  dl_iterate_phdr(find_module, reinterpret_cast<void*>(function));

  std::vector<Block> all_blocks(blocks);
  std::vector<Warp> warps(blocks * (threads / 32));
  bool enough = true;
  for (unsigned b = 0; b < blocks && enough; ++b) {
    Block& block = all_blocks[b];
    block.static_bytes = (static_bytes + 15) / 16 * 16;
    block.shared_bytes = block.static_bytes + dynamic_bytes;
    block.shared = reinterpret_cast<char*>(memory.allocate(block.shared_bytes, false));
    block.live = threads / 32;
    enough = block.shared;
    for (unsigned t = 0; t < threads && enough; ++t) {
      Warp& warp = warps[b * (threads / 32) + t / 32];
      const std::size_t number = std::size_t(b) * threads + t;
      char* stack = stacks.low(number);
      enough = stack;
      if (!enough) break;
      char* top = stacks.top(number);
      Lane* lane = reinterpret_cast<Lane*>(top - (sizeof(Lane) + 15) / 16 * 16);
      lane->thread = {t, 0, 0};
      lane->block = {b, 0, 0};
      lane->stack = stack;
      lane->warp = &warp;
      lane->number = t % 32;
      lane->saved = fresh_stack(reinterpret_cast<char*>(lane), live);
      warp.lanes[t % 32] = lane;
      if (t % 32) continue;
      warp.block = &block;
      warp.resume = lane;
      ready.push_back(&warp);
    }
  }
  bool good = enough && schedule(seconds, all_blocks);
  if (!enough) snprintf(message, sizeof message, "no memory for the threads of the grid");
  current = nullptr;
  for (const Block& block : all_blocks)
    if (block.shared) memory.release(reinterpret_cast<Address>(block.shared));
  Address length;
  *code = failed_at;
  data[0] = failed_address;
  data[1] = memory.nearest(failed_address, &length);
  return good ? nullptr : message;
}
}
