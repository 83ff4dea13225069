// Look lists up from their other end: the out-neighbours of a vertex u (those with a smaller id) are a bitmap, and for each
// arc between u and a larger vertex v the out-neighbours of v before u are looked up in it, which are a prefix of its list.
// All entries that the prefixes of a list have are half of the squares of the lists' lengths: on R-MAT 22 a quarter of
// what the lists of all out-neighbours have, which are looked up from v.
#pragma once
#include "local_counts/arc_tasks.cuh"
#include "local_counts/smaller_lists.cuh"

// Of a kernel, what tells which arcs there are; see LargerArcs.
#define LARGER_ARCS                                                                                          \
  const i64 *larger_ptr, const u32 *larger_vertices, const i64 *larger_split, i64 number, i64 base, const u64 *pairs, \
      const u64 *number_of_pairs

constexpr int kAhead = 4;  // entries that a lane reads before it looks them up

// Arcs between a vertex u and larger ones v, those of the same u together: of a whole graph, in which the larger neighbours
// of `base` + x are vertices[split[x]:ptr[x + 1]], for x below `number`, and `vertices` has those from ptr[0] on; or, if ptr
// is null, `pairs`, *number_of_pairs of them: v, and the place of u in the list of v. Only arcs to v from low to high - 1
// count; a `high` of 0 is no bound.
struct LargerArcs {
  const i64* ptr;
  const u32* vertices;
  const i64* split;
  i64 number, base;
  const u64* pairs;
  const u64* number_of_pairs;
  i64 low, high;

  // Let those vertices count that own some of the arcs first to last - 1 of a graph, if this is a whole one.
  DEVICE void narrow(const i64* indptr, i64 num_vertices, i64 first, i64 last) {
    if (!ptr) return;
    const VertexRange range = vertices_of_slots(indptr, num_vertices, first, last);
    low = range.begin;
    high = range.end < num_vertices ? range.end : 0;
  }

  // Only arcs to v < high count, and u < v: the rows from `high` on have no arc that counts.
  DEVICE ArcTasks tasks(i64 size, i64 words, u32* next, const u32* stop) const {
    if (ptr) return {ptr[0], ptr[high ? max(min(high - base, number), i64(0)) : number], size, words, next, stop};
    // The host does not know how many there are: all blocks should have some.
    const i64 all = static_cast<i64>(*number_of_pairs);
    size = min(max(all / (gridDim.x * kPrefixTasks), i64(32)), size);
    return {0, all, size, words, next, stop};
  }

  // Set v to the end of the thread's arc, of a block that takes the arcs [from, to); return whether the arc may count.
  DEVICE bool larger_end(i64 from, i64 to, u32& v) const {
    const i64 arc = from + threadIdx.x;
    if (arc >= to) return false;
    v = ptr ? vertices[arc - ptr[0]] : static_cast<u32>(pairs[arc] >> 32);
    return v >= low && (!high || v < high);
  }

  // Return the row of an arc, which is `row` or a later one, by a warp: search `length` rows first, then more.
  DEVICE i64 row_of(i64 arc, i64 row, i64 length) const {
    for (;; length <<= 5) {
      const i64 some = min(length, number + 1 - row), found = warp_lower_bound(ptr + row, some, arc + 1);
      if (found < some || row + some > number) return row + found - 1;
    }
  }

  // Set u to the row of the same arc, which is one of first to last; return whether u is smaller than the arc's end.
  DEVICE bool smaller_end(i64 from, i64 first, i64 last, u32& u) const {
    const i64 arc = from + threadIdx.x;
    const i64 x = first + lower_bound(ptr + first, last - first + 1, arc + 1) - 1;
    u = static_cast<u32>(base + x);
    return arc >= split[x];
  }
};

// A prefix that is looked up.
struct Prefix {
  const u32* entries;
  const u32* own;  // the out-neighbours of u
  u64 more;        // what a kind notes of it
  u32 v, u;
  int size, length;  // of the prefix, which is the place of u in the list; of the out-neighbours of u
};
static_assert(sizeof(Prefix) == kPrefixBytes);

constexpr int kMostPrefixes = 32 * kWarps;  // that a block takes at once: one for each thread
constexpr int kPrefixWords = kPrefixControlWords + kMostPrefixes * kPrefixBytes / 4;

// The bitmap of a block, and what is behind it.
DEVICE u32* prefix_bits() { return dynamic_shared + kPrefixWords; }

// Write the prefixes of the arcs [from, to) that count to shared memory, by a block, in the order of u; return how many.
// kind.wants(prefix) says whether a prefix counts, and may note something. `row` is that of `from` or an earlier one; if
// the block looks for rows, it becomes the row of to - 1.
template <typename Kind>
DEVICE int take_prefixes(const Rows& rows, const LargerArcs& larger, i64 from, i64 to, i64& row, Kind& kind) {
  const int warp = warp_in_block(), lane = lane_id();
  Prefix* prefixes = reinterpret_cast<Prefix*>(dynamic_shared + kPrefixControlWords);
  Prefix own = {nullptr, nullptr, 0, 0, 0, 0, 0};
  bool wanted = larger.larger_end(from, to, own.v);
  if (!__syncthreads_or(wanted)) return 0;
  const i64 last = larger.ptr ? larger.row_of(to - 1, row, 32) : 0;
  wanted = wanted && (!larger.ptr || larger.smaller_end(from, row, last, own.u));
  row = last;
  if (wanted) {
    const List list = list_of(rows, own.v);
    if (!larger.ptr) own.u = list.entries[own.size = static_cast<int>(larger.pairs[from + threadIdx.x])];
    const List others = list_of(rows, own.u);
    own.entries = list.entries;
    own.own = others.entries;
    own.length = others.length;
    if (larger.ptr) own.size = others.length ? lower_bound(list.entries, list.length, own.u) : 0;
    wanted = others.length && own.size > 0 && kind.wants(own);
  }
  const u32 mask = __ballot_sync(kAll, wanted);
  u32* numbers = dynamic_shared + kPrefixControlWords - kWarps;
  if (lane == 0) numbers[warp] = __popc(mask);
  __syncthreads();
  u32 before = 0, all = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) before = all;
    all += numbers[w];
  }
  if (wanted) prefixes[before + __popc(mask & lanes_before())] = own;
  if (threadIdx.x == 0) dynamic_shared[1] = 0;
  __syncthreads();
  return static_cast<int>(all);
}

// Return the index after the last prefix that has the u of the prefix `begin`; by a warp.
DEVICE int end_of_same(const Prefix* prefixes, int begin, int number) {
  int end = begin;
  for (u32 same = kAll; same == kAll; end += __popc(same))
    same = __ballot_sync(kAll, end + lane_id() < number && prefixes[end + lane_id()].u == prefixes[begin].u);
  return end;
}

// Return whether a block looks up a number of prefixes in a bitmap of a list; otherwise warps search the list.
DEVICE bool in_bitmap(const Row& list, int number) { return list.length > kFew && number >= kWarps; }

// Call kind.scan(prefix, place, shared) for all of them, by a warp each, with `shared` where a block looks up of the same
// u; afterwards this calls kind.flush(prefix) for one of these.
template <bool PLACES, typename Kind>
DEVICE void for_prefixes(const Rows& rows, const LargerArcs& larger, const ArcTasks& tasks, Kind& kind) {
  const Prefix* prefixes = reinterpret_cast<const Prefix*>(dynamic_shared + kPrefixControlWords);
  u32 *next_prefix = dynamic_shared + 1, *bits = prefix_bits(), *before = bits + tasks.words;
  for (i64 w = threadIdx.x; w < tasks.words; w += blockDim.x) bits[w] = 0;
  i64 from = 0, to = 0, row = 0;
  for (;;) {
    if (from >= to) {
      __syncthreads();
      if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(tasks.stop) ? kNoVertex : atomicAdd(tasks.next, 1u);
      __syncthreads();
      from = tasks.first + dynamic_shared[0] * tasks.size;
      if (from >= tasks.last) return;
      to = min(from + tasks.size, tasks.last);
      if (larger.ptr) row = larger.row_of(from, row, larger.number + 1);
    }
    const i64 upto = min(from + kMostPrefixes, to);
    const int number = take_prefixes(rows, larger, from, upto, row, kind);
    from = upto;
    // First the warps look prefixes up in bitmaps, for which they wait for each other; then they search for the rest.
    // Prefixes differ in length, so a warp takes the next one as it finishes one.
    int rest = 0;
    for (int begin = 0, end = 0; begin < number; begin = end) {
      end = end_of_same(prefixes, begin, number);
      const Row own = {prefixes[begin].own, prefixes[begin].length};
      if (!in_bitmap(own, end - begin)) {
        rest += end - begin;
        continue;
      }
      const Bitmap<PLACES> place = fill_bitmap<PLACES>(own, tasks.words, bits, before);
      if (threadIdx.x == 0) *next_prefix = begin;
      __syncthreads();
      for (int i = take(next_prefix, 1); i < end; i = take(next_prefix, 1)) kind.scan(prefixes[i], place, true);
      __syncthreads();
      kind.flush(prefixes[begin]);
      clear_bitmap(place, bits);
      if (threadIdx.x == 0) *next_prefix = 0;
      __syncthreads();
    }
    if (!rest) continue;
    int mine = take(next_prefix, 1), at = 0;
    for (int begin = 0, end = 0; begin < number && mine < rest; begin = end) {
      end = end_of_same(prefixes, begin, number);
      const Row own = {prefixes[begin].own, prefixes[begin].length};
      if (in_bitmap(own, end - begin)) continue;
      for (int i = begin; i < end; ++i, ++at) {
        if (at != mine) continue;
        kind.scan(prefixes[i], own, false);
        mine = take(next_prefix, 1);
      }
    }
  }
}

// Read the entries at `at` and every 32 after it, as many as are read ahead; kNoVertex behind the last one.
DEVICE void read_ahead(const u32* entries, int size, int at, u32 (&found)[kAhead]) {
#pragma unroll
  for (int k = 0; k < kAhead; ++k) found[k] = at + 32 * k < size ? entries[at + 32 * k] : kNoVertex;
}
