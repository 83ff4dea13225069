// Copy adjacency lists from host memory to the device, in the order of its pages: neighbouring lists are read at the
// same time, in whole lines.
#include "common.cuh"

constexpr int kLine = 32;  // slots in 128 bytes, which the link moves at once

// List i is indices[begins[i]:begins[i] + lengths[i]], and goes to where out[ends[i] - lengths[i]] is.
extern "C" __global__ void __launch_bounds__(256, 8)
    stage_lists(const u32* indices, const i64* begins, const i64* ends, const int* lengths, i64 number, u32* next,
                u32* out) {
  const int lane = lane_id();
  for (;;) {
    const i64 base = take(next, 32);
    if (base >= number) return;
    const i64 own = base + lane;
    const i64 own_begin = own < number ? begins[own] : 0;
    const int own_length = own < number ? lengths[own] : 0;
    const i64 own_to = own < number ? ends[own] - own_length : 0;
    const int active = static_cast<int>(min(number - base, i64(32)));
    for (int i = 0; i < active; ++i) {
      const i64 begin = __shfl_sync(kAll, own_begin, i);
      const int length = __shfl_sync(kAll, own_length, i);
      u32* to = out + __shfl_sync(kAll, own_to, i);
      const int before = static_cast<int>(begin % kLine);
      for (int j = lane - before; j < length; j += 32) {
        if (j >= 0) to[j] = indices[begin + j];
      }
    }
  }
}
