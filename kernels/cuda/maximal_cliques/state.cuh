// What a warp that searches for maximal cliques holds, and where it leaves what it finds.
#pragma once
#include "common.cuh"

// constexpr int kMode (kCountCliques, kCountVertices or kListCliques), kSharedSizes (sizes of cliques that are counted per block),
// kLongest (most later neighbours of a vertex), kStateBytes (of State), kDonationRows (most rows that are handed over), kDonationWords (of a slot for them),
// kLeastDonation (least candidates of a node that is), kBlocks (per multiprocessor); constexpr u32 kPatience (cycles between
// donations), kStepsBetweenPauses
#include "generated.cuh"

constexpr int kVertexLevels = kMode == kCountVertices ? kFinderLevels : 1;
constexpr int kWords = (kLongest + 31) / 32 > 0 ? (kLongest + 31) / 32 : 1;  // of a bitmap of later neighbours

constexpr int kWideLevels = kLongest > kNarrow ? kLongest - kNarrow + 2 : 0;

DEVICE u64 bit_at(int i) { return 1ull << i; }
DEVICE int lowest_bit(u64 word) { return __ffsll(static_cast<i64>(word)) - 1; }
DEVICE u64 joined(u32 low, u32 high) { return static_cast<u64>(high) << 32 | low; }
DEVICE u64 ballot_pair(bool low, bool high) {
  const u32 first = __ballot_sync(kAll, low);
  return joined(first, __ballot_sync(kAll, high));
}

// The graph, and its degeneracy order.
struct OrderedGraph {
  const i64* indptr;
  const u32* indices;
  const u32* rank;
  const i64* later_ptr;
  const u32* later;

  // Whether two later neighbours of a vertex are adjacent; each lane for itself.
  DEVICE bool adjacent(u32 a, u32 b) const {
    const u32 earlier = rank[a] < rank[b] ? a : b, other = earlier == a ? b : a;
    const i64 begin = later_ptr[earlier];
    const int length = static_cast<int>(later_ptr[earlier + 1] - begin);
    const int at = lower_bound(later + begin, length, other);
    return at < length && later[begin + at] == other;
  }
};

// What a warp is at; see kernels/cpu/maximal_cliques/narrow.py for the search. It is in shared memory, and saved where
// a list is full.
struct State {
  // A narrow search: its levels, and the candidates with those that each is adjacent to.
  u64 candidates[kFinderLevels], untried[kFinderLevels], excluded[kFinderLevels];
  u64 adjacent[kNarrow];
  u64 total_before[kVertexLevels];
  int alive[kFinderLevels], length[kFinderLevels];
  int start[kVertexLevels], peak_before[kVertexLevels];
  u32 ids[kNarrow];
  // The root or task that is worked on; roots that were taken and not begun.
  u64 total;
  i64 roots;
  u32 pending;
  u32 root;
  int base;  // vertices of the clique that the task began with
  int peak;
  int depth, wide_level;
  int wide_size;  // candidates of a wide search when it began
  int phase;
  u32 queue_slot;
  u32 unused;
};
static_assert(sizeof(State) == kStateBytes);

// Bits of `phase`: no roots are left to take; the task has to begin; it is searched; it was handed over;
// the warp waits for the donation to its queue slot.
constexpr int kWaits = 1, kBegins = 2, kSearches = 4, kGiven = 8, kHoldsSlot = 16;

// A warp's arrays in global memory.
struct Store {
  u64* rows;        // u64[rows]: candidates that each vertex excludes in a narrow search, those of a level in front
  u32* path;        // u32[kLongest + 2]: the clique
  u32* task;        // u32[3][kWords]: over later neighbours of the root: the clique, candidates, untried ones
  u32* order;       // u32[rows]: the rows of a wide search, those of a level in front
  u32* ids;         // u32[kLongest]: its candidates
  u32* adjacent;    // u32[wide_size][words]
  u32* wide_rows;   // u32[][words]
  u32* wide_sets;   // u32[kWideLevels][3][kWords]: candidates, untried ones, excluded ones of a level
  int* wide_numbers;  // int[kWideLevels][kWideNumbers]
};

constexpr int kAlive = 0, kLength = 1, kSize = 2, kStart = 3, kPeakBefore = 4, kTotalBefore = 5;  // and 6
static_assert(kTotalBefore + 2 == kWideNumbers);

// What is found.
struct Found {
  i64 min_size;
  u64* shared_sizes;  // u64[kSharedSizes] of the block
  u64* sizes;         // u64[kLongest + 2]
  u64* vertices;      // u64[2][num_vertices]
  i64 num_vertices;
  u64* listing;  // rows << kFillBits | vertices that were listed; the same of the first clique that found no room
  i64 capacity;
  i64* offsets;
  u32* members;
};

// Count cliques for one of their vertices; each lane for a vertex of its own.
DEVICE void note(const Found& found, u32 vertex, u64 times, int size) {
  atomicAdd(&found.vertices[vertex], times);
  atomicMax(&found.vertices[found.num_vertices + vertex], static_cast<u64>(size));
}

DEVICE void note_path(const Found& found, const u32* path, int from, int to, u64 times, int size) {
  for (int i = from + lane_id(); i < to; i += 32) note(found, path[i], times, size);
}

DEVICE void count_size(const Found& found, int size, u64 times) {
  if (lane_id() == 0) atomicAdd(size < kSharedSizes ? &found.shared_sizes[size] : &found.sizes[size], times);
}

// Whether a list is full: no clique is listed before the next launch.
DEVICE bool is_full(const Found& found) {
  return kMode == kListCliques && __shfl_sync(kAll, load_volatile(&found.listing[1]), 0) != ~0ull;
}

// Find room for a clique in the list: where its first vertex goes, -1 if it is full.
DEVICE i64 take_room(const Found& found, int size) {
  constexpr u64 fill_mask = (1ull << kFillBits) - 1;
  u64 at = 0;
  if (lane_id() == 0) at = atomicAdd(&found.listing[0], (1ull << kFillBits) + size);
  at = __shfl_sync(kAll, at, 0);
  const i64 fill = static_cast<i64>(at & fill_mask);
  if (fill + size > found.capacity) {
    if (lane_id() == 0) atomicMin(&found.listing[1], at);
    return -1;
  }
  if (lane_id() == 0) found.offsets[(at >> kFillBits) + 1] = fill + size;
  return fill;
}

// Move the kept entries of 32 to the front of array[begin:at + 32], behind which are the others; returns how many
// there are then. array[begin:at] was dropped before; `value` is that of the lane, of which the first `valid` count.
template <typename T>
DEVICE int keep_in_front(T* array, int begin, int at, T value, bool kept, int valid) {
  const u32 mask = __ballot_sync(kAll, kept);
  const int number = __popc(mask), lane = lane_id();
  if (!number) return begin;
  const int rank = __popc(mask & lanes_before()), dropped = at - begin;
  if (dropped >= number) {
    const T other = kept ? array[begin + rank] : value;
    __syncwarp();
    if (kept) {
      array[begin + rank] = value;
      array[at + lane] = other;
    }
  } else {
    const T other = lane < dropped ? array[begin + lane] : value;
    __syncwarp();
    if (kept) array[begin + rank] = value;
    if (lane < dropped) array[begin + number + lane] = other;
    if (!kept && lane < valid) array[begin + number + dropped + lane - rank] = value;
  }
  __syncwarp();
  return begin + number;
}
