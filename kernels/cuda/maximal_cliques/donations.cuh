// How busy warps hand parts of their work to idle ones.
//
// A warp without work takes a queue slot and waits for the donation of that number, in a slot of its own as a rule: thousands
// of warps that compete for the same donation hold up each other (2.6 us a donation). A donation is half of what is untried on the
// first level that has some: of a narrow search with all its rows, where these are few, else as bitmaps.
#pragma once
#include "maximal_cliques/tasks.cuh"

struct DonationControl {
  u32 next_root;    // roots from here on have not been taken yet
  u32 outstanding;  // warps that take roots, and donations that are not finished
  u32 given;        // donations ever
  u32 slots_taken;  // queue slots ever
};

// Words of a slot: its number (p: free for donation p, p + 1: holds it), the root, and the length of the path, which is 0
// where bitmaps follow, or else what the narrow search is at.
enum Field { kNumber, kRoot, kDonationLength, kDonationAlive, kDonationSets, kDonationData = kDonationSets + 6 };
static_assert(kDonationData == kDonationHeadWords);
constexpr u32 kDonationIds = kDonationData + kLongest + 2;             // u32[64], behind the path
constexpr u32 kDonationAdjacent = (kDonationIds + kNarrow + 1) & ~1u;  // u64[64]
constexpr u32 kDonationRowsAt = kDonationAdjacent + 2 * kNarrow;       // u64[kDonationRows]
constexpr u32 kBitmapWords = kDonationData + 3 * kWords;
constexpr u32 kSearchWords = kDonationRowsAt + 2 * kDonationRows;
constexpr u32 kSlotWords = kSearchWords > kBitmapWords ? kSearchWords : (kBitmapWords + 1) & ~1u;
static_assert(kSlotWords == kDonationWords);

struct Finder : Beginner {
  DonationControl* control;
  u32* ring;
  u32 ring_slots;
  const u32* stop;

  DEVICE u32* slot(u32 p) const { return ring + static_cast<i64>(p % ring_slots) * kSlotWords; }

  // Whether a warp waits for the next donation.
  DEVICE bool wanted() const {
    bool waits = false;
    if (lane_id() == 0) waits = static_cast<int>(load_volatile(&control->slots_taken) - load_volatile(&control->given)) > 0;
    return __shfl_sync(kAll, waits, 0);
  }

  // Now and then: give work away if others have none. True: return at once.
  DEVICE bool pause() {
    if (stop_asked(stop)) return true;
    const u32 worked = clock_of_warp() - since;
    if (worked > kPatience && wanted()) give(worked > patience);
    return false;
  }

  // Give half of the candidates away that are untried on the first level that has some; where the others would have to
  // build its rows anew, only if `rows_pay`.
  DEVICE void give(bool rows_pay) {
    if (kWideLevels && rows_pay) {
      for (int level = 0; level <= state->wide_level; ++level) {
        int number = 0;
        for (int w = lane_id(); w < words; w += 32) number += __popc(untried(level)[w]);
        number = __reduce_add_sync(kAll, number);
        if (number > (level == state->wide_level && state->depth < 0)) {
          give_wide(level, number >> 1);
          return;
        }
      }
    }
    for (int level = 0; level <= state->depth; ++level) {
      const u64 left = state->untried[level];
      const int number = __popcll(left);
      if (number > (level == state->depth) && (rows_pay || state->alive[level] <= kDonationRows)) {
        u64 given = left;
        for (int keep = number >> 1; keep; --keep) given &= given - 1;
        give_narrow(level, given);
        return;
      }
    }
  }

  // Give a node of the narrow search away before it is entered; false if it has to be searched here.
  DEVICE bool give_node() {
    if (node.alive > kDonationRows || __popcll(node.candidates) < kLeastDonation || !wanted()) return false;
    u32 at = 0;
    u32* donation = open_slot(&at);
    if (!donation) return false;
    copy_search(donation, node.length, node.alive, node.candidates, 0, node.excluded);
    close_slot(at);
    return true;
  }

  // Claim a slot; null if there is none.
  DEVICE u32* open_slot(u32* at) {
    bool got = false;
    u32 p = 0;
    if (lane_id() == 0) {
      p = load_volatile(&control->given);
      if (static_cast<int>(load_volatile(&control->slots_taken) - p) > 0 && load_volatile(&slot(p)[kNumber]) == p) {
        atomicAdd(&control->outstanding, 1u);
        got = atomicCAS(&control->given, p, p + 1) == p;
        if (!got) atomicSub(&control->outstanding, 1u);
        __threadfence();
      }
    }
    if (!__shfl_sync(kAll, got, 0)) return nullptr;
    *at = __shfl_sync(kAll, p, 0);
    return slot(*at);
  }

  // Begin a donation of bitmaps: all zero.
  DEVICE u32* clear_bitmaps(u32* donation) const {
    for (u32 w = kRoot + lane_id(); w < kBitmapWords; w += 32) donation[w] = 0;
    __syncwarp();
    if (lane_id() == 0) donation[kRoot] = state->root;
    return donation + kDonationData;
  }

  DEVICE void close_slot(u32 at) {
    number_slot(at, at + 1);
    since = clock_of_warp();
  }

  // Hand a slot to the other side.
  DEVICE void number_slot(u32 at, u32 number) {
    __threadfence();
    __syncwarp();
    if (lane_id() == 0) atomicExch(&slot(at)[kNumber], number);
  }

  // Put a later neighbour of the root into a bitmap of a task; each lane for itself.
  DEVICE void put(u32* bitmap, u32 vertex) const {
    const u32* later = graph.later + graph.later_ptr[state->root];
    const int count = static_cast<int>(graph.later_ptr[state->root + 1] - graph.later_ptr[state->root]);
    const int at = lower_bound(later, count, vertex);
    atomicOr(&bitmap[at >> 5], 1u << (at & 31));
  }

  DEVICE void put_path(u32* bitmap, int length) const {
    for (int i = 1 + lane_id(); i < length; i += 32) put(bitmap, store.path[i]);
  }

  DEVICE void give_narrow(int level, u64 given) {
    u32 at = 0;
    u32* donation = open_slot(&at);
    if (!donation) return;
    const u64 kept = state->untried[level] & ~given;
    if (state->alive[level] <= kDonationRows) {
      copy_search(donation, state->length[level], state->alive[level], state->candidates[level] & ~kept, given,
                  state->excluded[level] | kept);
    } else {
      put_level(clear_bitmaps(donation), level, kept, given);
    }
    close_slot(at);
    if (lane_id() == 0) state->untried[level] = kept;
    __syncwarp();
  }

  // Write the state of a narrow search: vertices of the path, rows, and the sets.
  DEVICE void copy_search(u32* donation, int length, int alive, u64 all, u64 given, u64 tried) const {
    const int lane = lane_id();
    if (lane == 0) {
      donation[kRoot] = state->root;
      donation[kDonationLength] = length;
      donation[kDonationAlive] = alive;
      u64* sets = reinterpret_cast<u64*>(donation + kDonationSets);
      sets[0] = all;
      sets[1] = given;
      sets[2] = tried;
    }
    for (int i = lane; i < length; i += 32) donation[kDonationData + i] = store.path[i];
    u64* adjacent = reinterpret_cast<u64*>(donation + kDonationAdjacent);
    for (int i = lane; i < kNarrow; i += 32) {
      donation[kDonationIds + i] = state->ids[i];
      adjacent[i] = state->adjacent[i];
    }
    u64* rows = reinterpret_cast<u64*>(donation + kDonationRowsAt);
    for (int i = lane; i < alive; i += 32) rows[i] = store.rows[i];
  }

  // Begin there. A node without untried candidates has not been entered.
  DEVICE void take_search(const u32* donation) {
    const int lane = lane_id(), length = __ldcg(&donation[kDonationLength]), alive = __ldcg(&donation[kDonationAlive]);
    const u64* sets = reinterpret_cast<const u64*>(donation + kDonationSets);
    const u64 all = __ldcg(&sets[0]), given = __ldcg(&sets[1]), excluded = __ldcg(&sets[2]);
    for (int i = lane; i < length; i += 32) store.path[i] = __ldcg(&donation[kDonationData + i]);
    const u64* adjacent = reinterpret_cast<const u64*>(donation + kDonationAdjacent);
    for (int i = lane; i < kNarrow; i += 32) {
      state->ids[i] = __ldcg(&donation[kDonationIds + i]);
      state->adjacent[i] = __ldcg(&adjacent[i]);
    }
    const u64* rows = reinterpret_cast<const u64*>(donation + kDonationRowsAt);
    for (int i = lane; i < alive; i += 32) store.rows[i] = __ldcg(&rows[i]);
    reset(length);
    node = {false, false, all, excluded, alive, length, length, -1, 0};
    if (given) {
      push(node, given);
    } else {
      node.fresh = filter_rows(node, 0);
    }
    since = clock_of_warp();
    patience = kPatience;
  }

  // Write a level of the narrow search as bitmaps.
  DEVICE void put_level(u32* bitmaps, int level, u64 kept, u64 given) const {
    const u64 all = state->candidates[level] & ~kept;
    put_path(bitmaps, state->length[level]);
    for (int i = lane_id(); i < kNarrow; i += 32) {
      if (all >> i & 1) put(bitmaps + kWords, state->ids[i]);
      if (given >> i & 1) put(bitmaps + 2 * kWords, state->ids[i]);
    }
  }

  DEVICE void give_wide(int level, int keep) {
    u32 at = 0;
    u32* donation = open_slot(&at);
    if (!donation) return;
    u32* bitmaps = clear_bitmaps(donation);
    put_path(bitmaps, numbers(level)[kLength]);
    for (int w = 0; w < words; ++w) {
      const u32 left = untried(level)[w], all = candidates(level)[w];
      u32 given = left;
      for (; keep && given; --keep) given &= given - 1;
      const u32 kept = left & ~given;
      const u32 vertex = all >> lane_id() & 1 ? store.ids[32 * w + lane_id()] : kNoVertex;
      if ((all & ~kept) >> lane_id() & 1) put(bitmaps + kWords, vertex);
      if (given >> lane_id() & 1) put(bitmaps + 2 * kWords, vertex);
      __syncwarp();
      if (lane_id() == 0) untried(level)[w] = kept;
      __syncwarp();
    }
    close_slot(at);
  }

  // Wait for a donation, and take it. False once no warp can donate in this launch any more; the slot is kept then.
  DEVICE bool take_donation() {
    bool got = false;
    u32 at = 0;
    if (lane_id() == 0) {
      if (!(state->phase & kHoldsSlot)) {
        state->queue_slot = atomicAdd(&control->slots_taken, 1u);
        state->phase |= kHoldsSlot;
      }
      at = state->queue_slot;
      const u32* number = &slot(at)[kNumber];
      for (u32 nap = 100; !got; nap = min(nap * 2, 4000u)) {
        // In this order: a giver counts its donation as outstanding until it is done.
        const bool over = load_volatile(&control->outstanding) == 0;
        got = load_volatile(number) == at + 1;
        if (got) state->phase ^= kHoldsSlot;
        if (over || load_volatile(stop) || (kMode == kListCliques && load_volatile(&found.listing[1]) != ~0ull)) break;
        if (!got) __nanosleep(nap);
      }
      __threadfence();
    }
    if (!__shfl_sync(kAll, got, 0)) return false;
    at = __shfl_sync(kAll, at, 0);
    const u32* donation = slot(at);
    if (lane_id() == 0) state->root = __ldcg(&donation[kRoot]);
    if (__ldcg(&donation[kDonationLength])) {
      take_search(donation);
    } else {
      for (u32 w = lane_id(); w < 3 * kWords; w += 32) store.task[w] = __ldcg(&donation[kDonationData + w]);
      if (lane_id() == 0) state->phase |= kBegins;
    }
    number_slot(at, at + ring_slots);
    return true;
  }
};
