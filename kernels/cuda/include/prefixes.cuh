// Look lists up from their other end: the out-neighbours of a vertex u (those with a smaller id) are a bitmap, and for each
// arc between u and a larger vertex v the out-neighbours of v before u are looked up in it, which are a prefix of its list.
// All entries that the prefixes of a list have are half of the squares of the lists' lengths: on R-MAT 22 a quarter of
// what the lists of all out-neighbours have, which are looked up from v.
#pragma once
#include "arc_tasks.cuh"
#include "smaller_lists.cuh"

constexpr int kAhead = 4;  // entries that a lane reads before it looks them up

// Arcs to larger vertices: those of vertex `base` + x are vertices[split[x]:ptr[x + 1]], for x below `number`. If only
// arcs to the vertices low to high - 1 count, they are in order of these; high is 0 if all do.
struct LargerArcs {
  const i64* ptr;
  const u32* vertices;
  const i64* split;
  i64 number, base, low, high;

  // Let those vertices count that own some of the arcs first to last - 1 of a graph.
  DEVICE void narrow(const i64* indptr, i64 num_vertices, i64 first, i64 last) {
    const VertexRange range = vertices_of_slots(indptr, num_vertices, first, last);
    low = range.begin;
    high = range.end < num_vertices ? range.end : 0;
  }

  // As for_arcs reads them: `vertices` begins with the first one.
  DEVICE Graph graph() const { return {ptr, vertices - ptr[0], split, number}; }

  DEVICE ArcTasks tasks(i64 size, i64 words, u32* next, const u32* stop) const {
    return {ptr[0], ptr[number], size, words, next, stop};
  }
};

// Which vertices are looked up from, for `for_arcs`; the lists of smaller neighbours are in `rows`.
struct Prefixes {
  static constexpr i64 kBlockArcs = kWarps;  // so that all of a block's warps have some

  Rows rows;
  LargerArcs larger;

  DEVICE Row row(const Graph&, i64 x) const {
    const List list = list_of(rows, static_cast<u32>(larger.base + x));
    return {list.entries, list.length};
  }

  DEVICE i64 begin(const Graph& g, i64 x) const { return larger.low ? place(g, x, larger.low) : g.split[x]; }
  DEVICE i64 end(const Graph& g, i64 x) const { return larger.high ? place(g, x, larger.high) : g.indptr[x + 1]; }

  DEVICE static i64 place(const Graph& g, i64 x, i64 vertex) {
    const i64 from = g.split[x];
    return from + lower_bound(g.indices + from, g.indptr[x + 1] - from, static_cast<u32>(vertex));
  }
};

// Call scan(entries, size, lane) for the prefix of the list of every vertex that the arcs begin to end - 1 of `x` lead to,
// where take(v, size), by the lane, says that it is wanted; and done() after 32 of them at most.
template <typename Visit>
DEVICE void for_prefixes(const Prefixes& of, const Graph& g, i64 x, i64 begin, i64 end, int warp, int warps,
                         Visit& visit) {
  const int lane = lane_id(), step = arcs_at_once(end - begin, warps);
  for (i64 base = begin + static_cast<i64>(step) * warp; base < end; base += static_cast<i64>(step) * warps) {
    // The lanes fetch the next lists' bounds together.
    List own = {nullptr, 0};
    u32 v = kNoVertex;
    if (lane < step && base + lane < end) {
      v = g.indices[base + lane];
      own = list_of(of.rows, v);
      own.length = lower_bound(own.entries, own.length, static_cast<u32>(of.larger.base + x));
    }
    const bool wanted = visit.take(v, own.length) && own.length > 0;
    for (u32 todo = __ballot_sync(kAll, wanted); todo; todo &= todo - 1) {
      const int i = __ffs(todo) - 1;
      const List list = list_of_lane(own, i);
      visit.scan(list.entries, list.length, i);
    }
    visit.done();
  }
}

// Read the entries at `at` and every 32 after it, as many as are read ahead; kNoVertex behind the last one.
DEVICE void read_ahead(const u32* entries, int size, int at, u32 (&found)[kAhead]) {
#pragma unroll
  for (int k = 0; k < kAhead; ++k) found[k] = at + 32 * k < size ? entries[at + 32 * k] : kNoVertex;
}
