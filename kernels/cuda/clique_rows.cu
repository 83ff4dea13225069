// Make the bitmap tables of vertices in pieces: the rows of those out-neighbours whose lists are on the device, until
// all rows of all tables are there; and how long the tables are.
#include "clique_tables.cuh"
#include "prefixes.cuh"

constexpr i64 kArcs = 128;  // that a warp takes at once

// The words of the table of each vertex from `first` to `last` - 1: those of fewer than `least` out-neighbours have none.
extern "C" __global__ void __launch_bounds__(256)
    measure_tables(const i64* indptr, const i64* split, i64 first, i64 last, i64 least, i64* words) {
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 v = first + static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; v < last; v += threads) {
    const i64 degree = split[v] - indptr[v];
    words[v - first] = degree < least ? 0 : row_start(static_cast<int>(degree));
  }
}

// The rows of the vertices first_table to last_table - 1 that belong to out-neighbours from `low` to `high` - 1. Every
// warp has `width` words, as many as the longest row, in which it makes a row. Arcs are those of an oriented graph.
extern "C" __global__ void __launch_bounds__(256)
    make_rows(const i64* indptr, const u32* indices, const i64* split, const i64* places, u32* table_words,
              const i64* table_ends, i64 first_table, i64 last_table, i64 low, i64 high, i64 width, u64* next,
              const u32* stop) {
  const Rows graph = {indptr, indices, split, places};
  const Tables tables = {table_words, table_ends, first_table};
  const int lane = lane_id();
  u32* row = dynamic_shared + warp_in_block() * width;
  const i64 number = last_table - first_table, arcs = indptr[last_table];
  for (i64 w = lane; w < width; w += 32) row[w] = 0;
  __syncwarp();
  for (;;) {
    i64 from = lane == 0 ? static_cast<i64>(atomicAdd(next, static_cast<u64>(kArcs))) : 0;
    from = indptr[first_table] + __shfl_sync(kAll, from, 0);
    if (from >= arcs || stop_asked(stop)) return;
    const i64 to = min(from + kArcs, arcs);
    for (i64 base = from; base < to; base += 32) {
      const i64 arc = base + lane;
      i64 v = first_table, list = 0;
      bool wanted = false;
      if (arc < to) {
        v = first_table + lower_bound(indptr + first_table, number + 1, arc + 1) - 1;
        const i64 begin = indptr[v], degree = split[v] - begin;
        list = place_of_list(places, begin, degree);
        const u32 u = indices[list + arc - begin];
        wanted = u >= low && u < high && table_ends[v - first_table] > (v > first_table ? table_ends[v - first_table - 1] : 0);
      }
      const int at = wanted ? static_cast<int>(arc - indptr[v]) : 0;
      for (u32 left = __ballot_sync(kAll, wanted); left; left &= left - 1) {
        const int one = __ffs(left) - 1;
        const int i = __shfl_sync(kAll, at, one);
        mark_row(graph, __shfl_sync(kAll, list, one), i, row);
        __syncwarp();
        u32* made = tables.of(__shfl_sync(kAll, v, one)) + row_start(i);
        for (int w = lane; w < row_words(i + 1); w += 32) {
          made[w] = row[w];
          row[w] = 0;
        }
        __syncwarp();
      }
    }
  }
}

// Makes row i of the table of a vertex v from the other end: of u, the out-neighbour i of v, the out-neighbours are a
// bitmap, in which those of v before u are looked up, 32 for a word.
struct RowsOfLarger : Prefixes {
  Tables tables;
  i64 least;

  template <typename Place>
  struct Words {
    const RowsOfLarger& of;
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
  DEVICE void visit(const Graph& g, i64 u, i64 begin, i64 end, const Row&, int warp, int warps, const Place& place) {
    Words<Place> made = {*this, place, nullptr};
    for_prefixes(g, rows, u, begin, end, warp, warps, made);
  }
};

// All rows of the tables of the vertices first_table to last_table - 1.
extern "C" __global__ void __launch_bounds__(256, 6)
    make_rows_of_larger(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, u32* table_words,
                        const i64* table_ends, i64 first_table, i64 last_table, i64 least, i64 size, i64 words, u32* next,
                        const u32* stop) {
  RowsOfLarger kind = {{{indptr, indices, split, nullptr}, first_table, last_table},
                       {table_words, table_ends, first_table},
                       least};
  for_arcs<false>(Graph{indptr, indices, split, num_vertices}, kind,
                  {0, indptr[num_vertices], size, words, next, stop});
}
