// Bring equal neighbours of sorted keys together: one of them stays, alone, with their number or with the sum of their
// payloads.
#include "common.cuh"
#include "generated.cuh"

DEVICE bool differs(const u64* high, const u64* low, i64 at) {
  return at == 0 || low[at] != low[at - 1] || (kWords == 2 && high[at] != high[at - 1]);
}

// Count for every stretch of keys how many differ from the key before; a warp for each.
extern "C" __global__ void __launch_bounds__(256)
    count_distinct(const u64* high, const u64* low, i64 length, i64 stretches, i64* counts) {
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  for (i64 stretch = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); stretch < stretches;
       stretch += warps) {
    const i64 end = min((stretch + 1) * kStretch, length);
    i64 count = 0;
    for (i64 at = stretch * kStretch + lane_id(); at < end; at += 32) count += differs(high, low, at);
    count = warp_sum(count);
    if (lane_id() == 0) counts[stretch] = count;
  }
}

// Add to a sum that others may add to; both are below 2^63 unless the sum, or a payload, is out of range.
DEVICE void add(u64* sum, u64 value, u32* overflow) {
  if ((atomicAdd(sum, value) + value) >> 63 || value >> 63) *overflow = 1;
}

// Write the distinct keys, and their sums if the layout has a payload; `ends` are inclusive prefix sums of the counts, `out_payload` is zeros.
extern "C" __global__ void __launch_bounds__(256)
    reduce_keys(const u64* high, const u64* low, const u64* payload, i64 length, i64 stretches, const i64* ends,
                u64* out_high, u64* out_low, u64* out_payload, u32* overflow) {
  const int lane = lane_id();
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  for (i64 stretch = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); stretch < stretches;
       stretch += warps) {
    const i64 begin = stretch * kStretch, end = min(begin + kStretch, length);
    i64 before = (stretch ? ends[stretch - 1] : 0) - 1;  // the group that the key before is in
    u64 carried = 0;  // of that group, not yet added
    for (i64 base = begin; base < end; base += 32) {
      const i64 at = base + lane;
      const bool inside = at < end, head = inside && differs(high, low, at);
      const u32 heads = __ballot_sync(kAll, head);
      const i64 group = before + __popc(heads & (lanes_before() | 1u << lane));
      if (head) {
        out_low[group] = low[at];
        if (kWords == 2) out_high[group] = high[at];
      }
      if (!kPayload) {
        before += __popc(heads);
        continue;
      }
      u64 sum = !inside ? 0 : kCount ? 1 : payload[at];
      bool overflown = sum >> 63;
      if (heads & 1) {
        if (lane == 0 && carried) add(out_payload + before, carried, overflow);
      } else if (lane == 0) {
        sum += carried;
      }
      // Sums within each group, of the lanes up to this one.
      const int start = 31 - __clz((heads | 1) & (lanes_before() | 1u << lane));
      for (int distance = 1; distance < 32; distance <<= 1) {
        const u64 other = __shfl_up_sync(kAll, sum, distance);
        if (lane - distance >= start) sum += other;
        overflown |= sum >> 63;
      }
      if (overflown) *overflow = 1;
      const bool last_of_group = lane < 31 && (heads >> (lane + 1) & 1);
      if (last_of_group) add(out_payload + group, sum, overflow);
      carried = __shfl_sync(kAll, sum, 31);
      before = __shfl_sync(kAll, group, 31);
    }
    if (lane == 0 && carried) add(out_payload + before, carried, overflow);
  }
}
