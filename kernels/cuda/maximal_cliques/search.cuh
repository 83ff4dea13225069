// The search among more than 64 candidates, by one warp: sets are bitmaps in global memory, and so are the rows of
// candidates and of excluded vertices. Where at most 64 candidates are left, a narrow search goes on.
#pragma once
#include "maximal_cliques/narrow.cuh"

// A node of the wide search that is to be entered: its sets are those of `level`.
struct WideNode {
  bool fresh;
  int level, known, length, size;
  int alive;   // rows of the level above
  int member;  // the candidate that was chosen there; -1 at the root
};

struct WideSearch : NarrowSearch {
  int words;  // of a bitmap

  DEVICE u32* candidates(int level) const { return store.wide_sets + 3 * level * kWords; }
  DEVICE u32* untried(int level) const { return candidates(level) + kWords; }
  DEVICE u32* excluded(int level) const { return candidates(level) + 2 * kWords; }
  DEVICE int* numbers(int level) const { return store.wide_numbers + level * kWideNumbers; }
  DEVICE const u32* row_of(int u) const { return store.adjacent + static_cast<i64>(u) * words; }
  DEVICE u32* excluding(u32 i) const { return store.wide_rows + static_cast<i64>(i) * words; }
  DEVICE static bool has(const u32* bitmap, int i) { return bitmap[i >> 5] >> (i & 31) & 1; }

  // How many members of a bitmap a row has.
  DEVICE int common(const u32* row, const u32* bitmap) const {
    int number = 0;
    for (int w = 0; w < words; ++w) number += __popc(row[w] & bitmap[w]);
    return number;
  }

  DEVICE bool covers(const u32* row, const u32* bitmap) const {
    bool all = true;
    for (int w = 0; w < words; ++w) all &= !(bitmap[w] & ~row[w]);
    return all;
  }

  // The best pivot so far of each lane.
  struct Pivot {
    int common = -1;
    const u32* row = nullptr;
    DEVICE void offer(bool valid, const u32* of, int number) {
      if (valid && number > common) {
        common = number;
        row = of;
      }
    }
  };

  // Leave the rows in front for which keep(row) holds and that have some candidates; -1 if one has all of them.
  template <typename Keep>
  DEVICE int filter_wide_rows(int alive, int size, const u32* all, Pivot& pivot, Keep keep) {
    int count = 0;
    for (int at = 0; at < alive; at += 32) {
      const int valid = min(alive - at, 32);
      const bool in = lane_id() < valid;
      const u32 i = in ? store.order[at + lane_id()] : 0;
      const u32* row = excluding(i);
      const int number = in && keep(row) ? common(row, all) : 0;
      if (__any_sync(kAll, number == size)) return -1;
      count = keep_in_front(store.order, count, at, i, number > 0, valid);
      pivot.offer(number > 0, row, number);
    }
    return count;
  }

  // Begin a level, or take its clique at once; false if the list is full.
  DEVICE bool enter_wide(WideNode& node) {
    const int lane = lane_id(), level = node.level;
    u32 *all = candidates(level), *joining = untried(level), *tried = excluded(level);
    Pivot pivot;
    int alive = filter_wide_rows(node.alive, node.size, all, pivot,
                                 [&](const u32* row) { return node.member < 0 || has(row, node.member); });
    if (alive < 0) return true;
    for (int w = 0; w < words; ++w) {
      const bool in = tried[w] >> lane & 1;
      const u32* row = row_of(32 * w + lane);
      const int number = in ? common(row, all) : 0;
      if (__any_sync(kAll, in && number == node.size)) return true;
      pivot.offer(in, row, number);
    }
    int universal = 0;
    for (int w = 0; w < words; ++w) {
      const u32 bits = all[w];
      const bool in = bits >> lane & 1;
      const u32* row = row_of(32 * w + lane);
      const int number = in ? common(row, all) : 0;
      const u32 joined_here = __ballot_sync(kAll, in && number == node.size - 1);
      if (joined_here >> lane & 1)
        store.path[node.length + universal + __popc(joined_here & lanes_before())] = store.ids[32 * w + lane];
      if (lane == 0) joining[w] = joined_here;
      universal += __popc(joined_here);
      pivot.offer(in && number != node.size - 1, row, number);
    }
    __syncwarp();
    if (universal == node.size) return emit(node.known, node.length + universal, 0);
    if (universal) {
      node.length += universal;
      node.size -= universal;
      alive = absorb(node, alive, pivot);
    }
    const u32 key = __reduce_max_sync(kAll, static_cast<u32>(pivot.common + 1));
    const int owner = __ffs(__ballot_sync(kAll, static_cast<u32>(pivot.common + 1) == key)) - 1;
    const u32* row = reinterpret_cast<const u32*>(__shfl_sync(kAll, reinterpret_cast<u64>(pivot.row), owner));
    __syncwarp();
    for (int w = lane; w < words; w += 32) joining[w] = all[w] & ~row[w];
    push_wide(node, alive);
    return true;
  }

  // Take the candidates that joined the clique, those in `untried` of the level, out; leave what excludes them. Returns
  // the number of rows.
  DEVICE int absorb(const WideNode& node, int alive, Pivot& pivot) {
    const int lane = lane_id();
    u32 *all = candidates(node.level), *joining = untried(node.level), *tried = excluded(node.level);
    pivot = Pivot();
    for (int w = lane; w < words; w += 32) all[w] &= ~joining[w];
    __syncwarp();
    alive = filter_wide_rows(alive, node.size, all, pivot, [&](const u32* row) { return covers(row, joining); });
    for (int w = 0; w < words; ++w) {
      const u32* row = row_of(32 * w + lane);
      const bool in = tried[w] >> lane & 1 && covers(row, joining);
      const int number = in ? common(row, all) : 0;
      const u32 kept = __ballot_sync(kAll, number > 0);
      __syncwarp();
      if (lane == 0) tried[w] = kept;
      __syncwarp();
      pivot.offer(number > 0, row, number);
    }
    for (int w = 0; w < words; ++w) {
      const bool in = all[w] >> lane & 1;
      const u32* row = row_of(32 * w + lane);
      pivot.offer(in, row, in ? common(row, all) : 0);
    }
    return alive;
  }

  // Begin a level.
  DEVICE void push_wide(const WideNode& node, int alive) {
    __syncwarp();
    if (lane_id() == 0) {
      int* own = numbers(node.level);
      own[kAlive] = alive;
      own[kLength] = node.length;
      own[kSize] = node.size;
      if (kMode == kCountVertices) {
        own[kStart] = node.known;
        own[kPeakBefore] = state->peak;
        own[kTotalBefore] = static_cast<int>(state->total);
        own[kTotalBefore + 1] = static_cast<int>(state->total >> 32);
        state->peak = 0;
      }
      state->wide_level = node.level;
    }
    __syncwarp();
  }

  DEVICE void pop_wide(int level) {
    const int* own = numbers(level);
    if (kMode == kCountVertices) {
      const u64 before = joined(static_cast<u32>(own[kTotalBefore]), static_cast<u32>(own[kTotalBefore + 1]));
      pop_totals(own[kStart], own[kLength], before, own[kPeakBefore]);
    }
    __syncwarp();
    if (lane_id() == 0) state->wide_level = level - 1;
    __syncwarp();
  }

  // The first word of a bitmap that is not 0; `words` if there is none.
  DEVICE int first_word(const u32* bitmap) const {
    for (int base = 0; base < words; base += 32) {
      const u32 mask = __ballot_sync(kAll, base + lane_id() < words && bitmap[base + lane_id()]);
      if (mask) return base + __ffs(mask) - 1;
    }
    return words;
  }

  // Choose the next candidate of the deepest level; `wide` or `node` is what is below then, if it is fresh. False if
  // the list is full.
  DEVICE bool step_wide(WideNode& wide, Node& node) {
    const int lane = lane_id(), level = state->wide_level;
    const int w = first_word(untried(level));
    if (w == words) {
      pop_wide(level);
      return true;
    }
    const int member = 32 * w + __ffs(untried(level)[w]) - 1;
    const u32 bit = 1u << (member & 31);
    const int length = numbers(level)[kLength], alive = numbers(level)[kAlive];
    const u32 *near = row_of(member), *all = candidates(level), *tried = excluded(level);
    u32 *below = candidates(level + 1), *excluded_below = excluded(level + 1);
    int size = 0;
    bool any_excluded = false;
    for (int x = lane; x < words; x += 32) {
      below[x] = all[x] & near[x];
      excluded_below[x] = tried[x] & near[x];
      size += __popc(below[x]);
      any_excluded |= excluded_below[x] != 0;
    }
    size = __reduce_add_sync(kAll, size);
    any_excluded = __any_sync(kAll, any_excluded);
    move_tried(level, member, true);
    if (length + 1 + size < found.min_size) return true;
    if (lane == 0) store.path[length] = store.ids[member];
    __syncwarp();
    if (size > kNarrow) {
      wide = {true, level + 1, length, length + 1, size, alive, member};
    } else if (size) {
      narrow_down(node, level + 1, length, alive, member, size);
    } else {
      bool maximal = !any_excluded;
      for (int i = 0; maximal && i < alive; i += 32)
        maximal = !__any_sync(kAll, i + lane < alive && excluding(store.order[i + lane])[w] & bit);
      if (maximal && !emit(length, length + 1, 0)) {
        move_tried(level, member, false);
        return false;
      }
    }
    return true;
  }

  // Mark a candidate as tried, or put it back.
  DEVICE void move_tried(int level, int member, bool forth) {
    const int w = member >> 5;
    const u32 bit = 1u << (member & 31);
    __syncwarp();
    if (lane_id() == 0) {
      u32 *all = candidates(level) + w, *left = untried(level) + w, *tried = excluded(level) + w;
      *all = forth ? *all & ~bit : *all | bit;
      *left = forth ? *left & ~bit : *left | bit;
      *tried = forth ? *tried | bit : *tried & ~bit;
    }
    __syncwarp();
  }

  // The candidates of a bitmap that a row has, as they are numbered in a narrow search.
  DEVICE u64 renumbered(const u32* row, const u32* all) const {
    u64 result = 0;
    int before = 0;
    for (int w = 0; w < words; ++w) {
      const u32 members = all[w];
      for (u32 bits = row[w] & members; bits; bits &= bits - 1)
        result |= bit_at(before + __popc(members & ((bits & -bits) - 1)));
      before += __popc(members);
    }
    return result;
  }

  // Begin a narrow search with the candidates and the excluded ones of a level.
  DEVICE void narrow_down(Node& node, int level, int length, int alive, int member, int size) {
    const int lane = lane_id();
    const u32 *all = candidates(level), *tried = excluded(level);
    const u64 everyone = ~0ull >> (kNarrow - size);
    node.candidates = everyone;
    node.excluded = 0;
    node.alive = 0;
    node.best = -1;
    __syncwarp();
    for (int w = 0; w < words; ++w) {
      const bool in = tried[w] >> lane & 1;
      if (!add_rows(node, in ? renumbered(row_of(32 * w + lane), all) : 0)) return;
    }
    for (int base = 0; base < alive; base += 32) {
      const u32* row = base + lane < alive ? excluding(store.order[base + lane]) : nullptr;
      if (!add_rows(node, row && has(row, member) ? renumbered(row, all) : 0)) return;
    }
    int before = 0;
    for (int w = 0; w < words; ++w) {
      const u32 members = all[w];
      if (members >> lane & 1) {
        const int at = before + __popc(members & lanes_before());
        state->ids[at] = store.ids[32 * w + lane];
        state->adjacent[at] = renumbered(row_of(32 * w + lane), all);
      }
      before += __popc(members);
    }
    __syncwarp();
    node.known = length;
    node.length = length + 1;
    node.of_wide = true;
    node.fresh = true;
  }

  // Add the lanes' rows of excluding vertices, where they have candidates; false if one has all.
  DEVICE bool add_rows(Node& node, u64 row) {
    if (__any_sync(kAll, row == node.candidates)) return false;
    const u32 mask = __ballot_sync(kAll, row != 0);
    if (row) store.rows[node.alive + __popc(mask & lanes_before())] = row;
    node.alive += __popc(mask);
    node.offer(row != 0, row, __popcll(row));
    __syncwarp();
    return true;
  }
};
