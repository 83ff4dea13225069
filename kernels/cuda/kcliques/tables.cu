// Make the bitmap tables of vertices in pieces: the rows of those out-neighbours whose lists are on the device, until
// all rows of all tables are there; and how long the tables are.
#include "kcliques/tables.cuh"
#include "local_counts/prefixes.cuh"

// Add up the words of the tables of each group of `step` vertices, from `first` to `last` - 1; vertices of fewer than
// `least` out-neighbours have no table. words: u64[number], a sum for each group.
extern "C" __global__ void __launch_bounds__(256)
    measure_tables(const i64* indptr, const i64* split, i64 first, i64 last, i64 step, i64 number, i64 least, u64* words) {
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  for (i64 i = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); i < number; i += warps) {
    const i64 begin = first + i * step, end = min(begin + step, last);
    u64 own = 0;
    for (i64 v = begin + lane_id(); v < end; v += 32) {
      const i64 degree = split[v] - indptr[v];
      if (degree >= least) own += row_start(static_cast<int>(degree));
    }
    own = warp_sum(own);
    if (lane_id() == 0) words[i] = own;
  }
}

// Where the table of each of these vertices begins, one behind the other in no order; *used, 0 before, is how long all are.
extern "C" __global__ void __launch_bounds__(256)
    place_tables(const i64* indptr, const i64* split, i64 first, i64 last, i64 least, i64* starts, u64* used) {
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 base = first + static_cast<i64>(blockIdx.x) * blockDim.x + 32 * warp_in_block(); base < last; base += threads) {
    const i64 v = base + lane_id(), degree = v < last ? split[v] - indptr[v] : 0;
    const u32 own = degree < least ? 0 : row_start(static_cast<int>(degree));
    const u64 upto = warp_prefix_sum(static_cast<u64>(own));
    u64 start = lane_id() == 31 && upto ? atomicAdd(used, upto) : 0;
    start = __shfl_sync(kAll, start, 31);
    if (v < last) starts[v - first] = static_cast<i64>(start + upto - own);
  }
}

// Makes row i of the table of a vertex v from the other end: of u, the out-neighbour i of v, the out-neighbours are a
// bitmap, in which those of v before u are looked up, 32 for a word.
struct TableRows {
  const i64* indptr;
  const i64* split;
  Tables tables;
  i64 least;

  DEVICE bool wants(Prefix& prefix) const {
    if (split[prefix.v] - indptr[prefix.v] < least) return false;
    prefix.more = reinterpret_cast<u64>(tables.of(prefix.v) + row_start(prefix.size));
    return true;
  }

  template <typename Place>
  DEVICE void scan(const Prefix& prefix, const Place& place, bool) const {
    const int lane = lane_id(), size = prefix.size, words = row_words(size);
    u32* row = reinterpret_cast<u32*>(prefix.more);
    u32 own = 0;
    for (int first = 0; first < words; first += kAhead) {
      u32 read[kAhead];
      read_ahead(prefix.entries, size, 32 * first + lane, read);
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const u32 word = __ballot_sync(kAll, read[k] != kNoVertex && place(read[k]) >= 0);
        if (((first + k) & 31) == lane) own = word;
      }
      const int next = first + kAhead;
      if ((next & 31) && next < words) continue;
      const int at = (first & ~31) + lane;  // 32 words are in lanes
      if (at < min(next, words)) row[at] = own;
    }
  }

  DEVICE void flush(const Prefix&) const {}
};

// The rows of those vertices that have tables, from `first_table` on, for which there are arcs to larger vertices.
extern "C" __global__ void __launch_bounds__(256, 6)
    make_rows(const i64* indptr, const u32* indices, const i64* split, const i64* places, LARGER_ARCS, i64 low, i64 high,
              u32* table_words, const i64* table_starts, i64 first_table, i64 least, i64 size, i64 words, u32* next,
              const u32* stop) {
  const LargerArcs larger = {larger_ptr, larger_vertices, larger_split, number, base, pairs, number_of_pairs,
                             low, high};
  TableRows kind = {indptr, split, {table_words, table_starts, first_table}, least};
  for_prefixes<false>({indptr, indices, split, places}, larger, larger.tasks(size, words, next, stop), kind);
}
