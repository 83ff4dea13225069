// Make the bitmap tables of vertices in pieces: the rows of those out-neighbours whose lists are on the device, until
// all rows of all tables are there; and how long the tables are.
#include "clique_tables.cuh"
#include "prefixes.cuh"

// The words of the table of each vertex from `first` to `last` - 1: those of fewer than `least` out-neighbours have none.
extern "C" __global__ void __launch_bounds__(256)
    measure_tables(const i64* indptr, const i64* split, i64 first, i64 last, i64 least, i64* words) {
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 v = first + static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; v < last; v += threads) {
    const i64 degree = split[v] - indptr[v];
    words[v - first] = degree < least ? 0 : row_start(static_cast<int>(degree));
  }
}

// Makes row i of the table of a vertex v from the other end: of u, the out-neighbour i of v, the out-neighbours are a
// bitmap, in which those of v before u are looked up, 32 for a word.
struct TableRows : Prefixes {
  Tables tables;
  i64 least;

  template <typename Place>
  struct Words {
    const TableRows& of;
    const Place& place;
    u32* row;  // of the lane's vertex

    DEVICE bool take(u32 v, int at) {
      if (v == kNoVertex || of.rows.split[v] - of.rows.indptr[v] < of.least) return false;
      row = of.tables.of(v) + row_start(at);
      return true;
    }

    DEVICE void scan(const u32* entries, int size, int from) {
      const int lane = lane_id(), words = row_words(size);
      u32* made = reinterpret_cast<u32*>(__shfl_sync(kAll, reinterpret_cast<u64>(row), from));
      u32 own = 0;
      for (int first = 0; first < words; first += kAhead) {
        u32 read[kAhead];
        read_ahead(entries, size, 32 * first + lane, read);
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          const u32 word = __ballot_sync(kAll, read[k] != kNoVertex && place(read[k]) >= 0);
          if (((first + k) & 31) == lane) own = word;
        }
        const int next = first + kAhead;
        if ((next & 31) && next < words) continue;
        const int at = (first & ~31) + lane;  // 32 words are in lanes
        if (at < min(next, words)) made[at] = own;
      }
    }

    DEVICE void done() {}
  };

  template <typename Place>
  DEVICE void visit(const Graph& g, i64 x, i64 begin, i64 end, const Row&, int warp, int warps, const Place& place) {
    Words<Place> made = {*this, place, nullptr};
    for_prefixes(*this, g, x, begin, end, warp, warps, made);
  }
};

// The rows of those vertices that have tables, from `first_table` on, for which there are arcs to larger vertices.
extern "C" __global__ void __launch_bounds__(256, 6)
    make_rows(const i64* indptr, const u32* indices, const i64* split, const i64* places, const i64* in_ptr,
              const u32* in_vertices, const i64* in_split, i64 number, i64 base, i64 low, i64 high, u32* table_words,
              const i64* table_ends, i64 first_table, i64 least, i64 size, i64 words, u32* next, const u32* stop) {
  const LargerArcs larger = {in_ptr, in_vertices, in_split, number, base, low, high};
  TableRows kind = {{{indptr, indices, split, places}, larger}, {table_words, table_ends, first_table}, least};
  for_arcs<false>(larger.graph(), kind, larger.tasks(size, words, next, stop));
}
