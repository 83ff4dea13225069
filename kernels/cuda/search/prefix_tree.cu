// Operations on prefix trees in columns: flatten, compact, cut. See prefix_tree.py.
//
// A warp works on a group of 256 nodes that stand together, so that their ancestors do too: the ancestors of the
// first and the last one bound the search for those between. What is kept of a level is a bit per node; with the
// number of kept nodes before each group, a node's new place is a few population counts away.
#include "common.cuh"

constexpr int kGroupWords = (1 << kTreeGroupBits) / 32;  // a bit for each node of a group

// The levels that a launch climbs, upwards; no nodes where there are no more. Children of node i begin at offsets[i].
template <typename T>
struct Steps {
  const i64* offsets[kTreeSteps];
  i64 nodes[kTreeSteps];
  T* data[kTreeSteps];
};

#define STEPS(T)                                                                                                 \
  const i64 *o0, i64 n0, T *d0, const i64 *o1, i64 n1, T *d1, const i64 *o2, i64 n2, T *d2, const i64 *o3, i64 n3, \
      T *d3
#define GIVEN_STEPS {{o0, o1, o2, o3}, {n0, n1, n2, n3}, {d0, d1, d2, d3}}

DEVICE i64 thread_in_grid() { return static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; }
DEVICE i64 threads_of_grid() { return static_cast<i64>(gridDim.x) * blockDim.x; }
DEVICE i64 warp_in_grid() { return thread_in_grid() >> 5; }
DEVICE i64 warps_of_grid() { return threads_of_grid() >> 5; }

// The parent of a node, known to be one of the nodes low to high; each lane for itself.
DEVICE i64 parent(const i64* offsets, i64 low, i64 high, i64 child) {
  while (low < high) {
    const i64 middle = (low + high + 1) >> 1;
    if (offsets[middle] <= child) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// The same for a warp with one child: every round reads 32 pivots at once.
DEVICE i64 warp_parent(const i64* offsets, i64 low, i64 high, i64 child) {
  while (low < high) {
    const i64 step = (high - low + 31) >> 5;
    const i64 pivot = low + (lane_id() + 1) * step;
    const bool passed = pivot <= high && offsets[pivot] <= child;
    low += __popc(__ballot_sync(kAll, passed)) * step;
    high = min(high, low + step - 1);
  }
  return low;
}

// Sums over this lane and those before it.
DEVICE i64 warp_inclusive_sum(i64 value) {
  for (int distance = 1; distance < 32; distance <<= 1) {
    const i64 before = __shfl_up_sync(kAll, value, distance);
    if (lane_id() >= distance) value += before;
  }
  return value;
}

// --- flatten --------------------------------------------------------------------------------------------------------

// Column `column + 1` of the rows is `last`, the column of the first step is `column`, the next one's is before it.
// Levels without data are climbed only. A warp climbs from a group of rows, `first` on.
template <typename T>
DEVICE void climb(i64 first, i64 num_rows, const T* last, T* flat, i64 column, const Steps<const T>& steps) {
  i64 low = first, high = min(first + (1 << kTreeGroupBits), num_rows) - 1;
  i64 node[kGroupWords];
#pragma unroll
  for (int j = 0; j < kGroupWords; ++j) {
    const i64 row = node[j] = first + j * 32 + lane_id();
    if (last && row < num_rows) flat[(column + 1) * num_rows + row] = last[row];
  }
#pragma unroll
  for (int s = 0; s < kTreeSteps; ++s) {
    if (!steps.nodes[s]) return;
    const i64* offsets = steps.offsets[s];
    const T* values = steps.data[s];
    low = warp_parent(offsets, 0, steps.nodes[s] - 1, low);
    high = warp_parent(offsets, low, steps.nodes[s] - 1, high);
#pragma unroll
    for (int j = 0; j < kGroupWords; ++j) {
      const i64 row = first + j * 32 + lane_id();
      if (row >= num_rows) continue;
      node[j] = parent(offsets, low, high, node[j]);
      if (values) flat[(column - s) * num_rows + row] = values[node[j]];
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
    climb_32(i64 num_rows, const u32* last, u32* flat, i64 column, STEPS(const u32)) {
  const Steps<const u32> steps = GIVEN_STEPS;
  for (i64 group = warp_in_grid(); group << kTreeGroupBits < num_rows; group += warps_of_grid())
    climb(group << kTreeGroupBits, num_rows, last, flat, column, steps);
}

extern "C" __global__ void __launch_bounds__(256)
    climb_64(i64 num_rows, const u64* last, u64* flat, i64 column, STEPS(const u64)) {
  const Steps<const u64> steps = GIVEN_STEPS;
  for (i64 group = warp_in_grid(); group << kTreeGroupBits < num_rows; group += warps_of_grid())
    climb(group << kTreeGroupBits, num_rows, last, flat, column, steps);
}

// --- compact --------------------------------------------------------------------------------------------------------

// Mark what is kept of a group of nodes, and the ancestors of that. What is kept is where the mask holds, or where
// counts are positive, or, where neither is given, what is marked already. The sum of the group's counts goes to `sums`.
DEVICE void mark_group(i64 group, i64 num_nodes, const unsigned char* mask, const i64* counts, u32* words, i64* sums,
                       const Steps<u32>& steps) {
  const int lane = lane_id();
  const i64 first = group << kTreeGroupBits;
  i64 node[kGroupWords], sum = 0;
  u32 kept[kGroupWords];
#pragma unroll
  for (int j = 0; j < kGroupWords; ++j) {
    const i64 own = node[j] = first + j * 32 + lane;
    if (mask) {
      kept[j] = __ballot_sync(kAll, own < num_nodes && mask[own]);
    } else if (counts) {
      const i64 count = own < num_nodes ? max(counts[own], i64(0)) : 0;
      sum += count;
      kept[j] = __ballot_sync(kAll, count > 0);
    } else {
      kept[j] = words[group * kGroupWords + j];
    }
    if ((mask || counts) && lane == 0) words[group * kGroupWords + j] = kept[j];
  }
  if (counts) {
    sum = warp_sum(sum);
    if (lane == 0) sums[group] = sum;
  }
  if (first == num_nodes) return;  // the last group may be empty
  i64 low = first, high = min(first + (1 << kTreeGroupBits), num_nodes) - 1;
#pragma unroll
  for (int s = 0; s < kTreeSteps; ++s) {
    if (!steps.nodes[s]) return;
    const i64* offsets = steps.offsets[s];
    low = warp_parent(offsets, 0, steps.nodes[s] - 1, low);
    high = warp_parent(offsets, low, steps.nodes[s] - 1, high);
    i64 before = -1;  // the parent of the kept node before these
#pragma unroll
    for (int j = 0; j < kGroupWords; ++j) {
      if (!kept[j]) continue;
      const bool own = kept[j] >> lane & 1;
      if (own) node[j] = parent(offsets, low, high, node[j]);
      // Of siblings only the first one goes on: a node with a million children is marked once per group of them.
      const u32 earlier = kept[j] & lanes_before();
      const i64 neighbour = __shfl_sync(kAll, node[j], earlier ? 31 - __clz(earlier) : 0);
      const bool leads = own && node[j] != (earlier ? neighbour : before);
      before = __shfl_sync(kAll, node[j], 31 - __clz(kept[j]));
      kept[j] = __ballot_sync(kAll, leads);
      if (leads) {
        u32* word = steps.data[s] + (node[j] >> 5);
        const u32 bit = 1u << (node[j] & 31);
        if (!(load_volatile(word) & bit)) atomicOr(word, bit);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(256)
    mark_kept(i64 num_nodes, const unsigned char* mask, const i64* counts, u32* words, i64* sums, STEPS(u32)) {
  const Steps<u32> steps = GIVEN_STEPS;
  for (i64 group = warp_in_grid(); group << kTreeGroupBits <= num_nodes; group += warps_of_grid())
    mark_group(group, num_nodes, mask, counts, words, sums, steps);
}

// Prefix sums, exclusive, of the kept nodes of each group, for up to five levels: a block for each level, whose groups
// end where the next one's begin; the levels' sums are `totals`. One block more, if there is one, sums up `sums` in place.
extern "C" __global__ void __launch_bounds__(1024)
    sum_groups(const u32* words, i64* prefix, i64* totals, i64 levels, i64* sums, i64 num_sums, i64 g0, i64 g1, i64 g2,
               i64 g3, i64 g4, i64 g5) {
  __shared__ i64 warp_totals[32];
  const i64 bounds[] = {g0, g1, g2, g3, g4, g5};
  const bool of_words = blockIdx.x < levels;
  const i64 begin = of_words ? bounds[blockIdx.x] : 0, end = of_words ? bounds[blockIdx.x + 1] : num_sums;
  i64* out = of_words ? prefix : sums;
  const i64 each = (end - begin + blockDim.x - 1) / blockDim.x;
  const i64 own_begin = min(begin + threadIdx.x * each, end), own_end = min(own_begin + each, end);
  i64 own = 0;
  for (i64 g = own_begin; g < own_end; ++g) {
    i64 amount;
    if (of_words) {
      const uint4* group = reinterpret_cast<const uint4*>(words) + g * 2;
      const uint4 a = group[0], b = group[1];
      amount = __popc(a.x) + __popc(a.y) + __popc(a.z) + __popc(a.w) + __popc(b.x) + __popc(b.y) + __popc(b.z) +
               __popc(b.w);
    } else {
      amount = sums[g];
    }
    out[g] = own;  // within what this thread sums up
    own += amount;
  }
  i64 ends = warp_inclusive_sum(own);
  if (lane_id() == 31) warp_totals[warp_in_block()] = ends;
  __syncthreads();
  if (warp_in_block() == 0) {
    const i64 total = lane_id() < blockDim.x >> 5 ? warp_totals[lane_id()] : 0;
    warp_totals[lane_id()] = warp_inclusive_sum(total);
  }
  __syncthreads();
  if (warp_in_block()) ends += warp_totals[warp_in_block() - 1];
  for (i64 g = own_begin; g < own_end; ++g) out[g] += ends - own;
  if (of_words && threadIdx.x == blockDim.x - 1) totals[blockIdx.x] = ends;
}

// How many nodes before this one are kept; the node after the last one has a group too.
DEVICE i64 rank(const u32* words, const i64* prefix, i64 node) {
  const i64 group = node >> kTreeGroupBits, word = node >> 5;
  i64 found = prefix[group] + __popc(words[word] & ((1u << (node & 31)) - 1));
  for (i64 w = group * kGroupWords; w < word; ++w) found += __popc(words[w]);
  return found;
}

// Bring the kept nodes of a level together. The last level has no offsets.
template <typename T>
DEVICE void gather(i64 num_nodes, const u32* words, const i64* prefix, const T* values, T* new_values,
                   const i64* offsets, i64* new_offsets, const u32* child_words, const i64* child_prefix) {
  if (thread_in_grid() == 0 && offsets) new_offsets[0] = 0;
  for (i64 node = thread_in_grid(); node < num_nodes; node += threads_of_grid()) {
    if (!(words[node >> 5] >> (node & 31) & 1)) continue;
    const i64 place = rank(words, prefix, node);
    new_values[place] = values[node];
    if (offsets) new_offsets[place + 1] = rank(child_words, child_prefix, offsets[node + 1]);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    gather_32(i64 num_nodes, const u32* words, const i64* prefix, const u32* values, u32* new_values,
              const i64* offsets, i64* new_offsets, const u32* child_words, const i64* child_prefix) {
  gather(num_nodes, words, prefix, values, new_values, offsets, new_offsets, child_words, child_prefix);
}

extern "C" __global__ void __launch_bounds__(256)
    gather_64(i64 num_nodes, const u32* words, const i64* prefix, const u64* values, u64* new_values,
              const i64* offsets, i64* new_offsets, const u32* child_words, const i64* child_prefix) {
  gather(num_nodes, words, prefix, values, new_values, offsets, new_offsets, child_words, child_prefix);
}

// The offsets of a new level below rows with these counts; rows without children have no place.
extern "C" __global__ void __launch_bounds__(256)
    gather_ends(i64 num_rows, const i64* counts, const i64* sums, const i64* prefix, i64* new_offsets) {
  if (thread_in_grid() == 0) new_offsets[0] = 0;
  for (i64 group = warp_in_grid(); group << kTreeGroupBits < num_rows; group += warps_of_grid()) {
    i64 place = prefix[group], before = sums[group];
#pragma unroll
    for (int j = 0; j < kGroupWords; ++j) {
      const i64 row = (group << kTreeGroupBits) + j * 32 + lane_id();
      const i64 count = row < num_rows ? max(counts[row], i64(0)) : 0;
      const u32 kept = __ballot_sync(kAll, count > 0);
      const i64 end = warp_inclusive_sum(count);
      if (count > 0) new_offsets[place + __popc(kept & lanes_before()) + 1] = before + end;
      place += __popc(kept);
      before += __shfl_sync(kAll, end, 31);
    }
  }
}

// --- cut ------------------------------------------------------------------------------------------------------------

// Find the ancestors of the first and the last node of a slice, a warp for each: ends[2][kTreeSteps].
extern "C" __global__ void __launch_bounds__(64) find_ends(i64* ends, i64 first, i64 last, STEPS(u32)) {
  const Steps<u32> steps = GIVEN_STEPS;
  i64* own = ends + warp_in_block() * kTreeSteps;
  i64 node = warp_in_block() ? last : first;
#pragma unroll
  for (int s = 0; s < kTreeSteps; ++s) {
    if (!steps.nodes[s]) return;
    node = warp_parent(steps.offsets[s], 0, steps.nodes[s] - 1, node);
    if (lane_id() == 0) own[s] = node;
  }
}

// Offsets of a slice of nodes, whose children are cut to begin to end - 1 and counted from there.
extern "C" __global__ void __launch_bounds__(256)
    cut_offsets(i64 num_offsets, const i64* offsets, i64* new_offsets, i64 begin, i64 end) {
  for (i64 i = thread_in_grid(); i < num_offsets; i += threads_of_grid())
    new_offsets[i] = min(max(offsets[i], begin), end) - begin;
}
