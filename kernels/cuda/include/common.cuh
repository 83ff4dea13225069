// Integer names, warp-wide searches and sums. Warps are always whole: every collective names all 32 lanes.
#pragma once

using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

// Numbers that Python needs, too: written by longwall.kernels.cuda.runtime.constants.
#include "constants.cuh"

#define DEVICE __device__ __forceinline__

constexpr u32 kAll = 0xffffffffu;

// All shared memory is dynamic: its size follows the graph.
extern __shared__ __align__(16) u32 dynamic_shared[];

DEVICE int lane_id() { return threadIdx.x & 31; }
DEVICE int warp_in_block() { return threadIdx.x >> 5; }

DEVICE u32 lanes_before() { return (1u << lane_id()) - 1; }

DEVICE u32 load_volatile(const u32* word) { return *static_cast<const volatile u32*>(word); }
DEVICE u64 load_volatile(const u64* word) { return *static_cast<const volatile u64*>(word); }

// Whether the host asked the kernels to return; the same for all lanes.
DEVICE bool stop_asked(const u32* stop) { return __shfl_sync(kAll, load_volatile(stop), 0) != 0; }

// Take `amount` items off a shared counter; all lanes get the first.
DEVICE u32 take(u32* counter, u32 amount) {
  u32 first = 0;
  if (lane_id() == 0) first = atomicAdd(counter, amount);
  return __shfl_sync(kAll, first, 0);
}

// Number of elements of the sorted array[0:length] that are smaller than `key`; each lane for itself.
template <typename T, typename Index>
DEVICE Index lower_bound(const T* array, Index length, T key) {
  Index first = 0;
  while (length > 0) {
    const Index half = length >> 1;
    if (array[first + half] < key) {
      first += half + 1;
      length -= half + 1;
    } else {
      length = half;
    }
  }
  return first;
}

// The same for a warp with one array and key: every round reads 32 pivots at once.
template <typename T, typename Index>
DEVICE Index warp_lower_bound(const T* array, Index length, T key) {
  const int lane = lane_id();
  Index first = 0;
  while (length > 32) {
    const Index step = (length + 31) >> 5;
    const Index pivot = (lane + 1) * step - 1;
    const bool less = pivot < length && array[first + pivot] < key;
    const Index passed = __popc(__ballot_sync(kAll, less)) * step;
    first += passed;
    length = min(step - 1, length - passed);
  }
  const bool less = lane < length && array[first + lane] < key;
  return first + __popc(__ballot_sync(kAll, less));
}

template <typename T>
DEVICE T warp_sum(T value) {
  for (int distance = 16; distance; distance >>= 1) value += __shfl_down_sync(kAll, value, distance);
  return value;
}

// Sums over the lanes up to each.
template <typename T>
DEVICE T warp_prefix_sum(T value) {
  for (int distance = 1; distance < 32; distance *= 2) {
    const T before = __shfl_up_sync(kAll, value, distance);
    if (lane_id() >= distance) value += before;
  }
  return value;
}

// Add the lanes' counts to result[0] (modulo 2^64) and their floating-point twins to result[1].
DEVICE void add_result(u64* result, u64 total, double estimate) {
  total = warp_sum(total);
  estimate = warp_sum(estimate);
  if (lane_id() == 0 && (total || estimate != 0)) {
    atomicAdd(result, total);
    atomicAdd(reinterpret_cast<double*>(result) + 1, estimate);
  }
}

// A sum modulo 2^128, in two words with carry; its parts may be negative.
struct WideSum {
  u64 low = 0, high = 0;

  DEVICE void add(u64 part, u64 upper = 0) {
    low += part;
    high += upper + (low < part);
  }

  DEVICE void add_signed(i64 part) { add(static_cast<u64>(part), static_cast<u64>(part >> 63)); }

  // Add this to a sum that other threads add to.
  DEVICE void add_to(u64* sum) const {
    const u64 upper = high + (atomicAdd(&sum[0], low) > ~low);
    if (upper) atomicAdd(&sum[1], upper);
  }

  // Add the sums of all lanes of a warp to one that other warps add to.
  DEVICE void add_lanes_to(u64* sum) const {
    WideSum total = *this;
    for (int distance = 16; distance; distance >>= 1) {
      const u64 other = __shfl_down_sync(kAll, total.low, distance);
      total.add(other, __shfl_down_sync(kAll, total.high, distance));
    }
    if (lane_id() == 0 && (total.low | total.high)) total.add_to(sum);
  }
};

// The vertices whose rows overlap the arcs first to last - 1.
struct VertexRange {
  i64 begin, end;
};

DEVICE VertexRange vertices_of_slots(const i64* indptr, i64 num_vertices, i64 first, i64 last) {
  return {lower_bound(indptr, num_vertices + 1, first + 1) - 1, lower_bound(indptr, num_vertices, last)};
}
