// Checks of the rows of a graph: each ascends, and they have each edge in both directions; see
// longwall.kernels.cpu.row_checks.
#include "local_counts/prefixes.cuh"

constexpr i64 kArcsAtOnce = 1 << 12;  // of a warp, which searches all rows for that of the first arc

// result (u64[2], zeros before): the hashes at larger ends less those at smaller ends; 1 if a row is wrong.
extern "C" __global__ void __launch_bounds__(256)
    check_rows(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 num_arcs, u64 add, u64 first,
               u64 second, u64* result) {
  const LargerArcs rows = {indptr, indices, split, num_vertices, 0, nullptr, nullptr, 0, 0};
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  const i64 warp = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
  u64 total = 0;
  bool good = true;
  for (i64 from = kArcsAtOnce * warp; from < num_arcs; from += kArcsAtOnce * warps) {
    const i64 to = min(from + kArcsAtOnce, num_arcs);
    i64 row = rows.row_of(from, 0, num_vertices + 1);
    for (i64 at = from; at < to; at += 32) {
      const i64 last = rows.row_of(min(at + 32, to) - 1, row, 32), arc = at + lane_id();
      if (arc < to) {
        const i64 own = row + lower_bound(indptr + row, last - row + 1, arc + 1) - 1, other = indices[arc];
        good &= other < num_vertices && other != own && (arc < split[own]) == (other < own) &&
                (arc == indptr[own] || indices[arc - 1] < other);
        u64 mixed = ((static_cast<u64>(min(own, other)) << 32 | static_cast<u64>(max(own, other))) + add) * first;
        mixed = (mixed ^ mixed >> 32) * second;
        mixed ^= mixed >> 32;
        total += other < own ? mixed : 0 - mixed;
      }
      row = last;
    }
  }
  total = warp_sum(total);
  if (lane_id() == 0) atomicAdd(&result[0], total);
  if (!good) result[1] = 1;
}
