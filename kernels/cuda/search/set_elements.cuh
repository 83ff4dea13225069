// The elements of sets: intersections, differences and labels, a warp for each set.
#pragma once
#include "search/program.cuh"

struct GraphView {
  const i64* indptr;
  const u32* indices;
  const i64* split;
  const int* labels;
  const u32* slices;  // u32[vertices, kSliceStride]: where the neighbours of each label begin, counted from the row
};

// What becomes of the elements of a set, 32 at a time: they are only counted, or written one after another. A sink
// returns whether it can take more.
struct CountElements {
  int found = 0;
  DEVICE bool operator()(u32, bool kept) {
    found += __popc(__ballot_sync(kAll, kept));
    return true;
  }
};

struct StoreElements {
  u32* out;
  int found = 0;
  DEVICE bool operator()(u32 x, bool kept) {
    const u32 mask = __ballot_sync(kAll, kept);
    if (kept) out[found + __popc(mask & lanes_before())] = x;
    found += __popc(mask);
    return true;
  }
};

// Pass the members whose presence in the sorted array equals KEEP to a sink.
template <bool KEEP, typename Sink>
PER_SET void combine(const u32* members, int count, const u32* array, int length, Sink& sink) {
  const int lane = lane_id();
  int base = 0;
  for (int i = 0; i < count; i += 32) {
    const int active = min(32, count - i);
    const u32 x = members[i + min(lane, active - 1)];
    const u32 last = __shfl_sync(kAll, x, 31);
    int end = length;
    if (end - base > 128) {
      // Members ascend: one look at 32 pivots bounds the part of the array that these 32 can lie in.
      const int step = (end - base + 31) >> 5;
      const int pivot = base + (lane + 1) * step - 1;
      const bool less = pivot < end && array[pivot] < last;
      end = min(end, base + (__popc(__ballot_sync(kAll, less)) + 1) * step);
    }
    const int at = base + lower_bound(array + base, end - base, x);
    const bool present = at < length && array[at] == x;
    if (!sink(x, lane < active && present == KEEP)) return;
    base = __shfl_sync(kAll, at, 31);
    if (KEEP && base >= length) return;
  }
}

// Pass the elements that carry a label to a sink.
template <typename Sink>
DEVICE void with_label(const u32* array, int length, const int* labels, int label, Sink& sink) {
  const int lane = lane_id();
  for (int i = 0; i < length; i += 32) {
    const u32 x = i + lane < length ? array[i + lane] : 0;
    if (!sink(x, i + lane < length && labels[x] == label)) return;
  }
}

DEVICE bool adjacent(const GraphView& graph, u32 u, u32 v) {
  const i64 begin = graph.indptr[u];
  const int length = static_cast<int>(graph.indptr[u + 1] - begin);
  const u32* row = graph.indices + begin;
  const int at = lower_bound(row, length, v);
  return at < length && row[at] == v;
}
