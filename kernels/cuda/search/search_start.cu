// How a counting search begins: its counters are set, and its rows chosen where they are counted.
#include "search/task_ring.cuh"

constexpr int kGroup = 256;  // arcs that a warp looks at, whose owners stand together

// Let no task wait, and no stack be lent.
DEVICE void begin_tasks(RingSlot* ring, u32* lent, i64 num_lent) {
  const i64 thread = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 i = thread; i < kRingSlots; i += threads) ring[i].sequence = static_cast<u32>(i);
  for (i64 i = thread; i < num_lent; i += threads) lent[i] = 0;
}

// Begin a count below `num_rows` rows, which the caller has. `control` is all zeros before.
extern "C" __global__ void __launch_bounds__(256)
    begin_search(RingSlot* ring, u32* lent, i64 num_lent, TaskControl* control, i64 num_rows) {
  begin_tasks(ring, lent, num_lent);
  if (blockIdx.x == 0 && threadIdx.x == 0) control->num_rows = static_cast<u32>(num_rows);
}

// What a vertex must have: a degree, and a label unless that is negative.
struct Wanted {
  i64 degree, label;

  DEVICE bool fits(const i64* indptr, const int* labels, i64 v) const {
    return indptr[v + 1] - indptr[v] >= degree && (label < 0 || labels[v] == label);
  }
};

// Append the edges of the arcs first to last - 1, where both ends may be at their levels, to rows[2, stride], which has
// none. The other end has a smaller id if `smaller`, a larger one if `larger`. `control` is all zeros before.
extern "C" __global__ void __launch_bounds__(256)
    choose_edges(RingSlot* ring, u32* lent, i64 num_lent, TaskControl* control, const i64* indptr, const u32* indices,
                 const int* labels, i64 num_vertices, i64 first, i64 last, i64 degree0, i64 label0, i64 degree1, i64 label1,
                 i64 smaller, i64 larger, u32* rows, i64 stride) {
  begin_tasks(ring, lent, num_lent);
  const Wanted low_end = {degree0, label0}, high_end = {degree1, label1};
  const i64 warps = (static_cast<i64>(gridDim.x) * blockDim.x) >> 5;
  for (i64 group = (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) >> 5; first + group * kGroup < last;
       group += warps) {
    const i64 begin = first + group * kGroup, end = min(begin + kGroup, last);
    const i64 lowest = warp_lower_bound(indptr, num_vertices + 1, begin + 1) - 1;
    const i64 highest = lowest + warp_lower_bound(indptr + lowest, num_vertices + 1 - lowest, end) - 1;
    for (i64 base = begin; base < end; base += 32) {
      const i64 at = base + lane_id();
      bool keep = at < end;
      u32 owner = 0, other = 0;
      if (keep) {
        owner = static_cast<u32>(lowest + lower_bound(indptr + lowest, highest - lowest + 1, at + 1) - 1);
        other = indices[at];
        keep = !(smaller && other >= owner) && !(larger && other <= owner) && low_end.fits(indptr, labels, owner) &&
               high_end.fits(indptr, labels, other);
      }
      const u32 kept = __ballot_sync(kAll, keep);
      if (!kept) continue;
      const u32 place = take(&control->num_rows, static_cast<u32>(__popc(kept))) + __popc(kept & lanes_before());
      if (keep) {
        rows[place] = owner;
        rows[stride + place] = other;
      }
    }
  }
}
