// Look lists up from their other end: the out-neighbours of a vertex u (those with a smaller id) are a bitmap, and for each
// arc between u and a larger vertex v the out-neighbours of v before u are looked up in it, which are a prefix of its list.
// All entries that the prefixes of a list have are half of the squares of the lists' lengths: on R-MAT 22 a quarter of
// what the lists of all out-neighbours have, which are looked up from v.
#pragma once
#include "arc_tasks.cuh"
#include "pages.cuh"

constexpr int kAhead = 4;  // entries that a lane reads before it looks them up

// Which vertices are looked up from, for `for_arcs`: `Graph` has the arcs to larger vertices, from the split on, in order
// of these, and `rows` the lists of smaller ones. Only arcs to the vertices low to high - 1 count.
struct Prefixes {
  Rows rows;
  i64 low, high;

  DEVICE Row row(const Graph&, i64 u) const {
    const List list = list_of(rows, static_cast<u32>(u));
    return {list.entries, list.length};
  }

  DEVICE i64 begin(const Graph& g, i64 u) const { return low ? place(g, u, low) : g.split[u]; }
  DEVICE i64 end(const Graph& g, i64 u) const { return high < g.num_vertices ? place(g, u, high) : g.indptr[u + 1]; }

 private:
  DEVICE static i64 place(const Graph& g, i64 u, i64 vertex) {
    const i64 from = g.split[u];
    return from + lower_bound(g.indices + from, g.indptr[u + 1] - from, static_cast<u32>(vertex));
  }
};

// Call scan(entries, size, lane) for the prefix of the list of every vertex that the arcs begin to end - 1 of u lead to,
// where take(v, size), by the lane, says that it is wanted; and done() after 32 of them at most.
template <typename Visit>
DEVICE void for_prefixes(const Graph& g, const Rows& rows, i64 u, i64 begin, i64 end, int warp, int warps, Visit& visit) {
  const int lane = lane_id(), step = arcs_at_once(end - begin, warps);
  for (i64 base = begin + static_cast<i64>(step) * warp; base < end; base += static_cast<i64>(step) * warps) {
    // The lanes fetch the next lists' bounds together.
    List own = {nullptr, 0};
    u32 v = kNoVertex;
    if (lane < step && base + lane < end) {
      v = g.indices[base + lane];
      own = list_of(rows, v);
      own.length = lower_bound(own.entries, own.length, static_cast<u32>(u));
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

// Read the entries at `at` and every 32 after it, as many as are read ahead; none is kNoVertex.
DEVICE void read_ahead(const u32* entries, int size, int at, u32 (&found)[kAhead]) {
#pragma unroll
  for (int k = 0; k < kAhead; ++k) found[k] = at + 32 * k < size ? entries[at + 32 * k] : kNoVertex;
}
