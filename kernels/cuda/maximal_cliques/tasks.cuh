// How roots and donations of the search for maximal cliques begin: the rows of their candidates, and those that exclude.
//
// A node of the search is known by its clique and its candidates: all other common neighbours of the clique are
// excluded. So bitmaps of the two, over the later neighbours of the root, say all, and the rows can be built anew.
#pragma once
#include "maximal_cliques/search.cuh"

struct Beginner : WideSearch {
  OrderedGraph graph;
  u32 since, patience;  // when the task began, and how long it is worked on before parts are given away
  Node node;
  WideNode wide;

  DEVICE u32 clock_of_warp() const { return __shfl_sync(kAll, static_cast<u32>(clock64()), 0); }

  // Write the later neighbours that a bitmap has; returns their number.
  DEVICE static int decode(const u32* bitmap, const u32* later, int bitmap_words, u32* out) {
    int number = 0;
    for (int w = 0; w < bitmap_words; ++w) {
      const u32 bits = bitmap[w];
      if (bits >> lane_id() & 1) out[number + __popc(bits & lanes_before())] = later[32 * w + lane_id()];
      number += __popc(bits);
    }
    return number;
  }

  // Read the later neighbours of the lanes' vertices x, all lists as one: hit(i, at) is called where the i-th lane's
  // vertex has the candidate ids[at], by any lane. `alive[i]` of the state says how many vertices of the clique, the
  // root apart, it has then. Takes the first levels of the narrow search as workspace.
  template <typename Hit>
  DEVICE void scan(u32 x, bool in, const u32* ids, int size, int length, Hit hit) {
    const int lane = lane_id();
    const i64 begin = in ? graph.later_ptr[x] : 0;
    const int own = in ? static_cast<int>(graph.later_ptr[x + 1] - begin) : 0;
    int end = own;
    for (int distance = 1; distance < 32; distance *= 2) {
      const int before = __shfl_up_sync(kAll, end, distance);
      if (lane >= distance) end += before;
    }
    const int total = __shfl_sync(kAll, end, 31);
    __syncwarp();
    state->length[lane] = end;
    state->untried[lane] = static_cast<u64>(begin - (end - own));
    state->alive[lane] = 0;
    __syncwarp();
    for (int e = lane; e < total; e += 32) {
      const int i = lower_bound(state->length, 31, e + 1);
      const u32 y = graph.later[static_cast<i64>(state->untried[i]) + e];
      const int at = lower_bound(ids, size, y);
      if (at < size && ids[at] == y) {
        hit(i, at);
      } else if (length > 1) {
        const int place = lower_bound(store.path + 1, length - 1, y);
        if (place < length - 1 && store.path[1 + place] == y) atomicAdd(&state->alive[i], 1);
      }
    }
    __syncwarp();
  }

  // Call earlier(x, in) for the neighbours of the root, of which those earlier than it are `in`, 32 at a time, and
  // later(y) for those later ones that are neither of the clique nor candidates but adjacent to all of the clique,
  // until one returns false.
  template <typename Earlier, typename Later>
  DEVICE bool for_each_excluded(u32 root, const u32* later, int count, int length, Earlier visit_earlier,
                                Later visit_later) const {
    const u32 own = graph.rank[root];
    const i64 end = graph.indptr[root + 1];
    for (i64 base = graph.indptr[root]; base < end; base += 32) {
      const u32 x = base + lane_id() < end ? graph.indices[base + lane_id()] : kNoVertex;
      if (!visit_earlier(x, x != kNoVertex && graph.rank[x] < own)) return false;
    }
    for (int w = 0; 32 * w < count; ++w) {
      const int left = count - 32 * w;
      u32 rest = ~(store.task[w] | store.task[kWords + w]) & (left < 32 ? (1u << left) - 1 : kAll);
      for (; rest; rest &= rest - 1) {
        const u32 y = later[32 * w + __ffs(rest) - 1];
        bool all = true;
        for (int i = 1 + lane_id(); i < length; i += 32) all &= graph.adjacent(store.path[i], y);
        if (__all_sync(kAll, all) && !visit_later(y)) return false;
      }
    }
    return true;
  }

  // Forget what was searched before; a clique of `length` vertices is there already.
  DEVICE void reset(int length) {
    __syncwarp();
    if (lane_id() == 0) {
      state->base = length;
      state->total = 0;
      state->peak = 0;
      state->depth = state->wide_level = -1;
    }
    __syncwarp();
    node.fresh = wide.fresh = false;
  }

  // Begin with the root of `state` and the bitmaps of the task; where there are untried ones, only these are tried.
  DEVICE void begin() {
    const int lane = lane_id();
    const u32 root = state->root, began = clock_of_warp();
    const u32* later = graph.later + graph.later_ptr[root];
    const int count = static_cast<int>(graph.later_ptr[root + 1] - graph.later_ptr[root]);
    const int root_words = (count + 31) >> 5;
    if (lane == 0) store.path[0] = root;
    const int length = 1 + decode(store.task, later, root_words, store.path + 1);
    int size = 0;
    bool divided = false;
    for (int w = lane; w < root_words; w += 32) {
      size += __popc(store.task[kWords + w]);
      divided |= store.task[2 * kWords + w] != 0;
    }
    size = __reduce_add_sync(kAll, size);
    divided = __any_sync(kAll, divided);
    reset(length);
    if (length + size >= found.min_size) {
      const bool whole = length == 1 && size == count;
      if (kWideLevels && size > kNarrow) {
        begin_wide(root, later, count, length, size, divided, whole);
      } else {
        begin_narrow(root, later, count, length, size, divided, whole);
      }
    }
    since = clock_of_warp();
    // A task should be worth what it costs to begin.
    patience = max(kPatience, since - began);
  }

  DEVICE void begin_narrow(u32 root, const u32* later, int count, int length, int size, bool divided, bool whole) {
    const int lane = lane_id();
    const u64 everyone = ~0ull >> (kNarrow - size);
    decode(store.task + kWords, later, (count + 31) >> 5, state->ids);
    state->adjacent[lane] = state->adjacent[lane + 32] = 0;
    __syncwarp();
    node = {false, false, everyone, 0, 0, length, length, -1, 0};
    const bool open = for_each_excluded(
        root, later, whole ? 0 : count, length,
        [&](u32 x, bool in) {
          state->candidates[lane] = 0;
          scan(x, in, state->ids, size, length,
               [&](int i, int at) { atomicOr(&state->candidates[i], bit_at(at)); });
          return add_rows(node, state->alive[lane] == length - 1 ? state->candidates[lane] : 0);
        },
        [&](u32 y) {
          const bool low = lane < size && graph.adjacent(state->ids[lane], y);
          const u64 row = ballot_pair(low, lane + 32 < size && graph.adjacent(state->ids[lane + 32], y));
          return add_rows(node, lane == 0 ? row : 0);
        });
    if (!open) return;
    for (int base = 0; base < size; base += 32)
      scan(state->ids[(base + lane) & 63], base + lane < size, state->ids, size, 1, [&](int i, int at) {
        atomicOr(&state->adjacent[base + i], bit_at(at));
        atomicOr(&state->adjacent[at], bit_at(base + i));
      });
    if (!divided) {
      node.fresh = true;
      return;
    }
    u64 own = 0;
    int before = 0;
    for (int w = 0; 32 * w < count; ++w) {
      const u32 members = store.task[kWords + w];
      if (store.task[2 * kWords + w] >> lane & 1) own |= bit_at(before + __popc(members & lanes_before()));
      before += __popc(members);
    }
    const u32 low = __reduce_or_sync(kAll, static_cast<u32>(own));
    push(node, joined(low, __reduce_or_sync(kAll, static_cast<u32>(own >> 32))));
  }

  DEVICE void begin_wide(u32 root, const u32* later, int count, int length, int size, bool divided, bool whole) {
    const int lane = lane_id();
    words = (size + 31) >> 5;
    decode(store.task + kWords, later, (count + 31) >> 5, store.ids);
    for (int w = lane; w < words; w += 32) {
      candidates(0)[w] = 32 * w + 32 <= size ? kAll : (1u << (size & 31)) - 1;
      untried(0)[w] = excluded(0)[w] = 0;
    }
    for (int w = lane; w < size * words; w += 32) store.adjacent[w] = 0;
    if (lane == 0) state->wide_size = size;
    __syncwarp();
    int alive = 0, made = 0;
    const bool open = for_each_excluded(
        root, later, whole ? 0 : count, length,
        [&](u32 x, bool in) {
          const u32 mask = __ballot_sync(kAll, in);
          // Rows of the earlier ones, one behind the other.
          const int place = made + __popc(mask & lanes_before());
          u32* rows = excluding(made);
          for (int w = lane; w < __popc(mask) * words; w += 32) rows[w] = 0;
          __syncwarp();
          state->candidates[lane] = place;
          scan(x, in, store.ids, size, length, [&](int i, int at) {
            atomicOr(&excluding(static_cast<u32>(state->candidates[i]))[at >> 5], 1u << (at & 31));
          });
          made += __popc(mask);
          return exclude_wide(in && state->alive[lane] == length - 1, place, size, alive);
        },
        [&](u32 y) {
          u32* row = excluding(made);
          for (int w = 0; w < words; ++w) {
            const int i = 32 * w + lane;
            const u32 bits = __ballot_sync(kAll, i < size && graph.adjacent(store.ids[i], y));
            if (lane == 0) row[w] = bits;
          }
          __syncwarp();
          return exclude_wide(lane == 0, made++, size, alive);
        });
    if (!open) return;
    for (int base = 0; base < size; base += 32) {
      const bool in = base + lane < size;
      scan(in ? store.ids[base + lane] : 0, in, store.ids, size, 1, [&](int i, int at) {
        const i64 row = static_cast<i64>(base + i) * words, other = static_cast<i64>(at) * words;
        atomicOr(&store.adjacent[row + (at >> 5)], 1u << (at & 31));
        atomicOr(&store.adjacent[other + ((base + i) >> 5)], 1u << ((base + i) & 31));
      });
    }
    __syncwarp();
    wide = {!divided, 0, length, length, size, alive, -1};
    if (!divided) return;
    int before = 0;
    for (int w = 0; 32 * w < count; ++w) {
      const u32 members = store.task[kWords + w];
      if (store.task[2 * kWords + w] >> lane & 1) {
        const int at = before + __popc(members & lanes_before());
        atomicOr(&untried(0)[at >> 5], 1u << (at & 31));
      }
      before += __popc(members);
    }
    push_wide(wide, alive);
  }

  // Keep the lanes' rows where they have candidates; false if one has all.
  DEVICE bool exclude_wide(bool in, int place, int size, int& alive) {
    const int number = in ? common(excluding(place), candidates(0)) : 0;
    if (__any_sync(kAll, number == size)) return false;
    const u32 mask = __ballot_sync(kAll, number > 0);
    if (number) store.order[alive + __popc(mask & lanes_before())] = place;
    alive += __popc(mask);
    __syncwarp();
    return true;
  }
};
