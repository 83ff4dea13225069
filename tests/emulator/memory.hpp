// The memory of the emulated device: allocations at addresses that are never used again, and a map of valid bytes.
#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

using Address = std::uintptr_t;

class DeviceMemory {
 public:
  static constexpr Address kSpace = Address(1) << 40;  // reserved addresses; pages come into being when touched
  static constexpr Address kPage = 4096;
  static constexpr Address kPoisoned = Address(1) << 24;  // new memory holds garbage as far as this, zeros beyond

  DeviceMemory() {
    base_ = reserve(kSpace);
    valid_ = reinterpret_cast<unsigned char*>(reserve(kSpace / 8));
    end_ = base_;
  }

  bool usable() const { return base_ && valid_; }

  // Give 0 when the addresses are used up. What is not for all stays invalid in the map.
  Address allocate(Address bytes, bool for_all = true) {
    const std::lock_guard lock(mutex_);
    const Address span = (bytes + kPage - 1) / kPage * kPage + kPage;  // a page behind that nobody may touch
    if (end_ + span > base_ + kSpace) return 0;
    const Address start = end_;
    end_ += span;
    memset(reinterpret_cast<void*>(start), 0xa5, bytes < kPoisoned ? bytes : kPoisoned);
    unsigned char* valid = valid_ + (start - base_) / 8;
    if (for_all) {
      memset(valid, 8, bytes / 8);
      if (bytes % 8) valid[bytes / 8] = bytes % 8;
    }
    allocations_[start] = bytes;
    return start;
  }

  void release(Address start) {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(start);
    if (found == allocations_.end()) return;
    const Address bytes = found->second;
    allocations_.erase(found);
    memset(valid_ + (start - base_) / 8, 0, (bytes + 7) / 8);
    madvise(reinterpret_cast<void*>(start), (bytes + kPage - 1) / kPage * kPage, MADV_DONTNEED);
  }

  // Host memory that kernels may reach: page-locked memory.
  void add_host(Address start, Address bytes) { host_[start] = bytes; }
  void remove_host(Address start) { host_.erase(start); }

  bool holds(Address address, unsigned bytes) const {
    const Address offset = address - base_;
    if (offset >= kSpace) return false;
    const unsigned within = offset % 8;
    if (within + bytes <= 8) return valid_[offset / 8] >= within + bytes;
    for (Address at = offset; at < offset + bytes; ++at)
      if (valid_[at / 8] <= at % 8) return false;
    return true;
  }

  bool on_host(Address address, unsigned bytes) const {
    const auto after = host_.upper_bound(address);
    if (after == host_.begin()) return false;
    const auto [start, length] = *std::prev(after);
    return address + bytes <= start + length;
  }

  // The start of the allocation at or before an address, 0 where there is none.
  Address nearest(Address address, Address* bytes) {
    const std::lock_guard lock(mutex_);
    const auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin()) return 0;
    *bytes = std::prev(after)->second;
    return std::prev(after)->first;
  }

  bool in_space(Address address) const { return address - base_ < kSpace; }

 private:
  static Address reserve(Address bytes) {
    void* found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return found == MAP_FAILED ? 0 : reinterpret_cast<Address>(found);
  }

  Address base_, end_;
  unsigned char* valid_;  // how many of each 8 bytes may be touched
  std::map<Address, Address> allocations_, host_;
  std::mutex mutex_;  // other threads of the host allocate while a kernel runs
};
