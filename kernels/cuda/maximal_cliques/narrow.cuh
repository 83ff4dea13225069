// The search among at most 64 candidates, by one warp: each lane holds the adjacency of two candidates.
//
// As kernels/cpu/maximal_cliques/narrow.py does it: Bron-Kerbosch with pivots on a stack of its own; candidates that
// are adjacent to all others join the clique at once; where nothing is excluded and each candidate has at most one that
// it is not adjacent to, the cliques are counted without a search.
#pragma once
#include "maximal_cliques/state.cuh"

// A node of the search that is to be entered.
struct Node {
  bool fresh;
  bool of_wide;  // below a level of the wide search
  u64 candidates, excluded;
  int alive;          // rows that exclude
  int known, length;  // vertices of the path that levels above have, and all of them
  // Of each lane: the most candidates that an excluding vertex has, and which; -1 where there is none.
  int best;
  u64 best_row;

  DEVICE void offer(bool valid, u64 row, int common) {
    if (valid && common > best) {
      best = common;
      best_row = row;
    }
  }
};

struct NarrowSearch {
  State* state;
  Store store;
  Found found;
  double estimate;

  // Take a maximal clique: the first `length` vertices of the path, and the candidates in `rest`; false if the list is
  // full. For counts per vertex the first `known` ones are left to their levels.
  DEVICE bool emit(int known, int length, u64 rest) {
    const int lane = lane_id(), size = length + __popcll(rest);
    if (size < found.min_size) return true;
    const bool low = rest >> lane & 1, high = rest >> (lane + 32) & 1;
    if (kMode == kListCliques) {
      const i64 at = take_room(found, size);
      if (at < 0) return false;
      for (int i = lane; i < length; i += 32) found.members[at + i] = store.path[i];
      if (low) found.members[at + length + __popcll(rest & (bit_at(lane) - 1))] = state->ids[lane];
      if (high) found.members[at + length + __popcll(rest & (bit_at(lane + 32) - 1))] = state->ids[lane + 32];
      return true;
    }
    count_size(found, size, 1);
    estimate += lane == 0;
    if (kMode == kCountVertices) {
      count_totals(1, size);
      note_path(found, store.path, known, length, 1, size);
      if (low) note(found, state->ids[lane], 1, size);
      if (high) note(found, state->ids[lane + 32], 1, size);
    }
    return true;
  }

  // Take all cliques that choose one of each pair of candidates that are not adjacent: `rest` is all such pairs.
  DEVICE void emit_pairs(int known, int length, u64 rest) {
    const int lane = lane_id(), pairs = __popcll(rest) >> 1, size = length + pairs;
    if (size < found.min_size) return;
    const u64 times = bit_at(pairs);
    count_size(found, size, times);
    estimate += lane == 0 ? static_cast<double>(times) : 0;
    if (kMode == kCountVertices) {
      count_totals(times, size);
      note_path(found, store.path, known, length, times, size);
      if (rest >> lane & 1) note(found, state->ids[lane], times >> 1, size);
      if (rest >> (lane + 32) & 1) note(found, state->ids[lane + 32], times >> 1, size);
    }
  }

  DEVICE void count_totals(u64 times, int size) {
    __syncwarp();
    if (lane_id() == 0) {
      state->total += times;
      state->peak = max(state->peak, size);
    }
    __syncwarp();
  }

  // Begin a level of counts per vertex: keep what was found before.
  DEVICE void push_totals(int level, int known) {
    if (lane_id() == 0) {
      state->start[level] = known;
      state->total_before[level] = state->total;
      state->peak_before[level] = state->peak;
      state->peak = 0;
    }
  }

  // End it: count what was found in it for the vertices of the path that joined it there.
  DEVICE void pop_totals(int start, int length, u64 total_before, int peak_before) {
    const u64 found_here = state->total - total_before;
    const int peak = state->peak;
    __syncwarp();
    if (found_here) note_path(found, store.path, start, length, found_here, peak);
    if (lane_id() == 0) state->peak = max(peak, peak_before);
    __syncwarp();
  }

  // Leave the rows that have `bits` and some of the candidates in front, and offer them as pivots. False if one has all
  // candidates: nothing below is maximal.
  DEVICE bool filter_rows(Node& node, u64 bits) {
    int count = 0;
    for (int at = 0; at < node.alive; at += 32) {
      const int valid = min(node.alive - at, 32);
      const u64 row = lane_id() < valid ? store.rows[at + lane_id()] : 0;
      const u64 common = row & node.candidates;
      const bool kept = common && (row & bits) == bits;
      if (__any_sync(kAll, kept && common == node.candidates)) return false;
      count = keep_in_front(store.rows, count, at, row, kept, valid);
      node.offer(kept, row, __popcll(common));
    }
    node.alive = count;
    return true;
  }

  // Begin a level, or take its cliques at once; false if the list is full.
  DEVICE bool enter(Node& node) {
    const int lane = lane_id(), size = __popcll(node.candidates);
    if (node.length + size < found.min_size) return true;
    const u64 low = state->adjacent[lane], high = state->adjacent[lane + 32], all = node.candidates;
    bool low_in = all >> lane & 1, high_in = all >> (lane + 32) & 1;
    const int low_common = __popcll(low & all), high_common = __popcll(high & all);
    const u64 universal = ballot_pair(low_in && low_common == size - 1, high_in && high_common == size - 1);
    if (universal == all) {
      if (emit(node.known, node.length, all)) return true;
      // The next launch finds it as the only clique of a level: the first candidate has all others.
      push(node, all & (~all + 1));
      return false;
    }
    const int joined_here = __popcll(universal);
    if (universal) {
      if (universal >> lane & 1)
        store.path[node.length + __popcll(universal & (bit_at(lane) - 1))] = state->ids[lane];
      if (universal >> (lane + 32) & 1)
        store.path[node.length + __popcll(universal & (bit_at(lane + 32) - 1))] = state->ids[lane + 32];
      node.length += joined_here;
      node.candidates = all & ~universal;
      low_in &= !(universal >> lane & 1);
      high_in &= !(universal >> (lane + 32) & 1);
      node.best = -1;
      const u64 low_left = low & node.candidates, high_left = high & node.candidates;
      const bool low_kept = node.excluded >> lane & 1 && (low & universal) == universal && low_left;
      const bool high_kept = node.excluded >> (lane + 32) & 1 && (high & universal) == universal && high_left;
      node.excluded = ballot_pair(low_kept, high_kept);
      node.offer(low_kept, low, __popcll(low_left));
      node.offer(high_kept, high, __popcll(high_left));
      // None has all candidates that are left, and these were all: it would have been seen before.
      filter_rows(node, universal);
    }
    if (kMode != kListCliques && node.alive == 0 && node.excluded == 0) {
      const bool many = (!low_in || low_common == size - 2) && (!high_in || high_common == size - 2);
      if (__all_sync(kAll, many)) {
        __syncwarp();
        emit_pairs(node.known, node.length, node.candidates);
        return true;
      }
    }
    node.offer(low_in, low, low_common - joined_here);
    node.offer(high_in, high, high_common - joined_here);
    const u32 key = __reduce_max_sync(kAll, static_cast<u32>(node.best + 1) << 5 | lane);
    const u64 pivot = __shfl_sync(kAll, node.best_row, key & 31);
    push(node, node.candidates & ~pivot);
    return true;
  }

  // Begin a level.
  DEVICE void push(const Node& node, u64 untried) {
    const int level = state->depth + 1;
    __syncwarp();
    if (lane_id() == 0) {
      state->depth = level;
      state->candidates[level] = node.candidates;
      state->untried[level] = untried;
      state->excluded[level] = node.excluded;
      state->alive[level] = node.alive;
      state->length[level] = node.length;
    }
    if (kMode == kCountVertices) push_totals(level, node.known);
    __syncwarp();
  }

  // Choose the next candidate of the deepest level; `node` is what is below then, if it is fresh. False if the list is
  // full.
  DEVICE bool step(Node& node) {
    const int lane = lane_id(), level = state->depth;
    const u64 todo = state->untried[level];
    const int length = state->length[level];
    if (!todo) {
      if (kMode == kCountVertices)
        pop_totals(state->start[level], length, state->total_before[level], state->peak_before[level]);
      __syncwarp();
      if (lane == 0) state->depth = level - 1;
      __syncwarp();
      return true;
    }
    const u64 all = state->candidates[level], tried = state->excluded[level];
    const int at = lowest_bit(todo);
    const u64 bit = bit_at(at), near = state->adjacent[at];
    node.candidates = all & near;
    const u64 excluded = tried & near;
    node.alive = state->alive[level];
    __syncwarp();
    if (lane == 0) {
      state->untried[level] = todo ^ bit;
      state->candidates[level] = all ^ bit;
      state->excluded[level] = tried | bit;
      store.path[length] = state->ids[at];
    }
    __syncwarp();
    if (length + 1 + __popcll(node.candidates) < found.min_size) return true;
    if (!node.candidates) {
      bool maximal = excluded == 0;
      for (int i = 0; maximal && i < node.alive; i += 32)
        maximal = !__any_sync(kAll, i + lane < node.alive && store.rows[i + lane] & bit);
      if (!maximal || emit(length, length + 1, 0)) return true;
      put_back(level, bit);
      return false;
    }
    const u64 low = state->adjacent[lane], high = state->adjacent[lane + 32];
    const u64 low_common = low & node.candidates, high_common = high & node.candidates;
    const bool low_kept = excluded >> lane & 1 && low_common, high_kept = excluded >> (lane + 32) & 1 && high_common;
    if (__any_sync(kAll, (low_kept && low_common == node.candidates) || (high_kept && high_common == node.candidates)))
      return true;
    node.excluded = ballot_pair(low_kept, high_kept);
    node.best = -1;
    node.offer(low_kept, low, __popcll(low_common));
    node.offer(high_kept, high, __popcll(high_common));
    if (!filter_rows(node, bit)) return true;
    node.known = length;
    node.length = length + 1;
    node.of_wide = false;
    node.fresh = true;
    return true;
  }

  // Put a candidate back that was chosen last.
  DEVICE void put_back(int level, u64 bit) {
    __syncwarp();
    if (lane_id() == 0) {
      state->untried[level] |= bit;
      state->candidates[level] |= bit;
      state->excluded[level] &= ~bit;
    }
    __syncwarp();
  }
};
