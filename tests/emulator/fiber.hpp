// Stacks, and the switch between them.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <vector>

#ifndef __x86_64__
#error "the switch between threads is written for x86-64"
#endif

// Save the registers that a call preserves, and the stack pointer in *from; go on where `to` was saved.
extern "C" void emulator_switch(void** from, void* to);
asm(R"(
.text
.globl emulator_switch
.hidden emulator_switch
.type emulator_switch, @function
emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulator_switch, .-emulator_switch
)");

// A stack pointer from which emulator_switch goes to `entry`; `top` is a multiple of 16.
inline void* fresh_stack(char* top, void (*entry)()) {
  void** at = reinterpret_cast<void**>(top) - 2;
  *at = reinterpret_cast<void*>(entry);
  return at - 6;
}

// Stacks that are kept from launch to launch; the page below each may not be touched.
class Stacks {
 public:
  static constexpr std::size_t kBytes = 64 << 10, kPage = 4096, kUsable = kBytes - kPage;

  // The lowest usable address of stack i, null where there is no memory.
  char* low(std::size_t i) {
    while (stacks_.size() <= i) {
      void* at = mmap(nullptr, kBytes * kAtOnce, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
      if (at == MAP_FAILED) return nullptr;
      for (std::size_t j = 0; j < kAtOnce; ++j) {
        char* stack = static_cast<char*>(at) + j * kBytes;
        mprotect(stack, kPage, PROT_NONE);
        stacks_.push_back(stack + kPage);
      }
    }
    return stacks_[i];
  }

  // Stacks of one size end at the same place of the caches, so their tops are spread over a page.
  char* top(std::size_t i) { return low(i) + kUsable - i % 16 * 256; }

 private:
  static constexpr std::size_t kAtOnce = 256;
  std::vector<char*> stacks_;
};
