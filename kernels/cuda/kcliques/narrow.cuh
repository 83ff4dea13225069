// Search for leaves of the pivot tree among at most 64 candidates, by one warp: each lane holds the adjacency of two.
//
// As kernels/cpu/kcliques/narrow.py does it. What is found with p pivots open is counted in cells of leaves, which weigh
// it by the ways to choose some of the p; what needs no pivot is counted in the lanes.
#pragma once
#include "kcliques/tables.cuh"

// constexpr int kLimbs (words of a count per vertex, 0: counts are not taken per vertex), kLight (out-degree up to which
// a vertex is one warp's work), kWholeTo, kPartWork, kLeastRows, kRowsPerPart (parts of larger vertices, one block's work
// each; see rows_of_part), kStateBytes (of NarrowState)
#include "generated.cuh"

constexpr int kSharedLeaves = kLimbs ? 0 : kSharedHeld * kSharedPivots;  // that are counted per block
// Triangles are counted one by one, which takes 1 / 4 of a lane's step for each edge, or by branches of 16 steps.
constexpr int kEdgesPerBranch = 64;
constexpr u32 kStepsBetweenStops = 64;

DEVICE u64 bit_at(int i) { return 1ull << i; }
DEVICE int lowest_bit(u64 word) { return __ffsll(static_cast<i64>(word)) - 1; }
DEVICE u64 ballot_pair(bool low, bool high) {
  const u32 first = __ballot_sync(kAll, low);
  return static_cast<u64>(__ballot_sync(kAll, high)) << 32 | first;
}

// What a warp is at, in shared memory.
struct NarrowState {
  u64 adjacent[kNarrow];
  u64 candidates[kPivotLevels], untried[kPivotLevels];
  int held[kPivotLevels], pivots[kPivotLevels], pivot[kPivotLevels];
  u32 queue[kTableQueue];
  u32 ids[kNarrow];
};

// What is wanted, and where it goes.
struct Leaves {
  int k;  // vertices of the cliques, 0: any number
  u64* shared_cells;  // u64[kSharedHeld][kSharedPivots] of the block
  u64* cells;         // u64[][row]
  i64 row;
  u64* counts;         // u64[kLimbs][num_vertices]
  i64 num_vertices;
  const u64* weights;  // u64[][k][kLimbs]
};

struct NarrowSearch {
  Leaves leaves;
  NarrowState* state;
  u32* held_path;   // the vertices that are held on the way to a node, and those that are pivots; for counts per vertex
  u32* pivot_path;
  const u32* stop;
  u64 total;  // of each lane: cliques that need no pivot
  u64 low, high;
  u32 steps;

  DEVICE void add_cell(int held, int pivots, u64 number) {
    if (lane_id() != 0 || !number) return;
    const bool shared = held < kSharedHeld && pivots < kSharedPivots;
    atomicAdd(shared ? &leaves.shared_cells[held * kSharedPivots + pivots] : &leaves.cells[held * leaves.row + pivots],
              number);
  }

  // Add a number of kLimbs words to those of a vertex; each lane for itself.
  DEVICE void add_words(u32 vertex, const u64* words) {
    u64 carry = 0;
    for (int limb = 0; limb < kLimbs; ++limb) {
      const u64 addend = words[limb] + carry;
      carry = addend < carry;
      if (!addend) continue;
      const u64 before = atomicAdd(&leaves.counts[limb * leaves.num_vertices + vertex], addend);
      carry += before + addend < before;
    }
  }

  DEVICE void add_number(u32 vertex, u64 number) {
    for (int limb = 0; limb < kLimbs && number; ++limb) {
      const u64 before = atomicAdd(&leaves.counts[limb * leaves.num_vertices + vertex], number);
      number = before + number < before;
    }
  }

  DEVICE void add_leaf(int held, int pivots) {
    if (!kLimbs) {
      add_cell(held, pivots, 1);
      return;
    }
    const int missing = leaves.k - held;
    const u64* words = leaves.weights + (static_cast<i64>(pivots) * leaves.k + missing) * kLimbs;
    for (int i = lane_id(); i < held; i += 32) add_words(held_path[i], words);
    if (!missing) return;
    words -= (leaves.k + 1) * kLimbs;  // one pivot and one choice less
    for (int i = lane_id(); i < pivots; i += 32) add_words(pivot_path[i], words);
  }

  // Count the cliques of a node that have less than `last` candidates, by how many of its pivots they have.
  DEVICE void add_open(int held, int pivots, int missing, u64 size, u64 edges) {
    if (!pivots) return;
    add_cell(held, pivots, 1);
    if (missing >= 2) add_cell(held + 1, pivots, size);
    if (missing >= 3) add_cell(held + 2, pivots, edges);
  }

  // Count cliques per vertex that miss one vertex, of the pivots or of `size` candidates; these are left to the caller.
  DEVICE void add_singles(int held, int pivots, int size) {
    for (int i = lane_id(); i < held; i += 32) add_number(held_path[i], static_cast<u64>(pivots + size));
    for (int i = lane_id(); i < pivots; i += 32) add_number(pivot_path[i], 1);
  }

  // Begin with the chosen ones, of which there are at most 64; `neighbours` are the vertices of the table.
  DEVICE void begin(const u32* table, const u32* chosen, int words, const u32* neighbours) {
    const int lane = lane_id();
    __syncwarp();
    int size = 0;
    for (int w = 0; w < words; ++w) {
      const u32 bits = chosen[w];
      if (bits >> lane & 1) state->queue[size + __popc(bits & lanes_before())] = 32 * w + lane;
      size += __popc(bits);
    }
    __syncwarp();
    const u32* low_row = lane < size ? table + row_start(state->queue[lane]) : nullptr;
    const u32* high_row = lane + 32 < size ? table + row_start(state->queue[lane + 32]) : nullptr;
    low = high = 0;
    for (int b = 0; b < size; ++b) {
      const u32 other = state->queue[b], word = other >> 5, bit = other & 31;
      const bool low_near = low_row && lane > b && low_row[word] >> bit & 1;
      const bool high_near = high_row && lane + 32 > b && high_row[word] >> bit & 1;
      if (low_near) low |= bit_at(b);
      if (high_near) high |= bit_at(b);
      const u64 later = ballot_pair(low_near, high_near);
      if (lane == b) low |= later;
      if (lane + 32 == b) high |= later;
    }
    state->adjacent[lane] = low;
    state->adjacent[lane + 32] = high;
    if (kLimbs) {
      if (lane < size) state->ids[lane] = neighbours[state->queue[lane]];
      if (lane + 32 < size) state->ids[lane + 32] = neighbours[state->queue[lane + 32]];
    }
    if (lane == 0) state->candidates[0] = size == kNarrow ? ~0ull : bit_at(size) - 1;
    __syncwarp();
  }

  // Triangles among the candidates; each lane returns its part.
  DEVICE u64 triangles(u64 all) const {
    u32 found = 0;
    for (int half = 0; half < 2; ++half) {
      const int x = lane_id() + 32 * half;
      u64 near = all >> x & 1 ? (half ? high : low) & all & (bit_at(x) - 1) : 0;
      while (near) {
        const int y = lowest_bit(near);
        near &= near - 1;
        found += __popcll(near & state->adjacent[y]);
      }
    }
    return found;
  }

  // Begin a level, or count what is below it at once; true if its candidates are to be tried.
  DEVICE bool enter(int level) {
    const int lane = lane_id(), k = leaves.k;
    const u64 all = state->candidates[level];
    const int held = state->held[level], missing = k - held;
    int pivots = state->pivots[level];
    const int size = __popcll(all);
    if (k && pivots + size < missing) return false;
    const bool low_in = all >> lane & 1, high_in = all >> (lane + 32) & 1;
    if (k && missing == 0) {
      add_leaf(held, 0);
      return false;
    }
    if (k && missing == 1) {
      if (kLimbs) {
        add_singles(held, pivots, size);
        if (low_in) add_number(state->ids[lane], 1);
        if (high_in) add_number(state->ids[lane + 32], 1);
      } else {
        add_open(held, pivots, 1, 0, 0);
        if (lane == 0) total += size;
      }
      return false;
    }
    const int low_common = low_in ? __popcll(low & all) : 0, high_common = high_in ? __popcll(high & all) : 0;
    u32 edges = 0;
    const bool ends = !kLimbs && k && missing <= 3;
    if (ends) {
      edges = __reduce_add_sync(kAll, static_cast<u32>(low_common + high_common)) / 2;
      if (missing == 2) {
        add_open(held, pivots, 2, size, 0);
        if (lane == 0) total += edges;
        return false;
      }
    }
    const bool low_universal = low_in && low_common == size - 1, high_universal = high_in && high_common == size - 1;
    const u64 universal = ballot_pair(low_universal, high_universal);
    const u32 low_key = low_in && !low_universal ? (low_common + 1) << 6 | lane : 0;
    const u32 high_key = high_in && !high_universal ? (high_common + 1) << 6 | (lane + 32) : 0;
    const u32 key = __reduce_max_sync(kAll, max(low_key, high_key));
    if (ends && key && edges <= static_cast<u32>(kEdgesPerBranch * (size - (static_cast<int>(key >> 6) - 1)))) {
      add_open(held, pivots, 3, size, edges);
      total += triangles(all);
      return false;
    }
    if (kLimbs) {
      if (low_universal) pivot_path[pivots + __popcll(universal & (bit_at(lane) - 1))] = state->ids[lane];
      if (high_universal) pivot_path[pivots + __popcll(universal & (bit_at(lane + 32) - 1))] = state->ids[lane + 32];
      __syncwarp();
    }
    pivots += __popcll(universal);
    if (!key) {
      add_leaf(held, pivots);
      return false;
    }
    const int pivot = key & 63;
    const u64 left = all & ~universal, untried = left & ~state->adjacent[pivot] & ~bit_at(pivot);
    __syncwarp();
    if (lane == 0) {
      state->pivots[level] = pivots;
      state->candidates[level] = left;
      state->untried[level] = untried;
      state->pivot[level] = pivot;
    }
    __syncwarp();
    return true;
  }

  // Find all leaves below the candidates that `begin` has set. `enter` is called in one place only, since every call is
  // inlined.
  DEVICE void search(int first_held, int first_pivots) {
    const int lane = lane_id();
    if (lane == 0) {
      state->held[0] = first_held;
      state->pivots[0] = first_pivots;
    }
    __syncwarp();
    for (int level = -1;;) {
      if (enter(level + 1)) ++level;
      u64 all, untried;
      int pivot;
      for (;; --level) {
        if (level < 0 || (++steps % kStepsBetweenStops == 0 && stop_asked(stop))) return;
        all = state->candidates[level];
        untried = state->untried[level];
        pivot = state->pivot[level];
        if (pivot >= 0 || untried) break;
      }
      const int held = state->held[level], pivots = state->pivots[level];
      const int chosen = pivot >= 0 ? pivot : lowest_bit(untried);
      const u64 below = all & state->adjacent[chosen];
      __syncwarp();
      if (lane == 0) {
        state->candidates[level] = all & ~bit_at(chosen);
        state->pivot[level] = -1;
        if (pivot < 0) state->untried[level] = untried & (untried - 1);
        state->candidates[level + 1] = below;
        state->held[level + 1] = held + (pivot < 0);
        state->pivots[level + 1] = pivots + (pivot >= 0);
        if (kLimbs) (pivot < 0 ? held_path[held] : pivot_path[pivots]) = state->ids[chosen];
      }
      __syncwarp();
    }
  }
};
