// Find triangles by looking lists up from their other ends: for `for_arcs`.
#pragma once
#include "prefixes.cuh"

// Count the triangles whose arc from the largest vertex to the middle one is one of first to last - 1 of the rows' graph.
struct Triangles : Prefixes {
  i64 first, last;
  u64 total;

  template <typename Place>
  struct Hits {
    const Triangles& of;
    const Place& place;
    u64 found;

    DEVICE bool take(u32 v, int size) const {
      const i64 arc = v == kNoVertex ? -1 : of.rows.indptr[v] + size;
      return arc >= of.first && arc < of.last;
    }

    DEVICE void scan(const u32* entries, int size, int) {
      u32 own = 0;
      for (int j = lane_id(); j < size; j += 32 * kAhead) {
        u32 read[kAhead];
        read_ahead(entries, size, j, read);
#pragma unroll
        for (int k = 0; k < kAhead; ++k)
          if (read[k] != kNoVertex) own += place(read[k]) >= 0;
      }
      found += own;
    }

    DEVICE void done() {}
  };

  // By some warps; each lane adds its part.
  template <typename Place>
  DEVICE void visit(const Graph& g, i64 x, i64 begin, i64 end, const Row&, int warp, int warps, const Place& place) {
    Hits<Place> hits = {*this, place, 0};
    for_prefixes(*this, g, x, begin, end, warp, warps, hits);
    total += hits.found;
  }
};

// Count triangles at their corners or sides. `Counts` says whether the triangles of an arc of the rows' graph, from a vertex
// v to u, count (wants), and takes what is found: a triangle at entry j of the list of v (at_entry); the triangles of v and u
// (at_larger); all of u (at_own); and those of u and its out-neighbour k (at_place), which for the first `room` of these are
// added up in `hits`, in shared memory.
template <typename Counts>
struct TriangleCorners : Prefixes {
  Counts counts;
  u32* hits;
  int room;

  template <typename Place>
  struct Found {
    const TriangleCorners& of;
    const Place& place;
    const Row& row;
    i64 u;
    int shared;  // places of the row that are added up
    u32 v;       // of the lane, with the place of u in its list, and what was found of both
    int size;
    u32 number;
    u64 total;

    DEVICE bool take(u32 vertex, int at) {
      v = vertex;
      size = at;
      number = 0;
      return v != kNoVertex && of.counts.wants(of.rows, v, at);
    }

    DEVICE void scan(const u32* entries, int length, int from) {
      const int lane = lane_id();
      const u32 vertex = __shfl_sync(kAll, v, from);
      u32 found = 0;
      for (int j = lane; j < length; j += 32 * kAhead) {
        u32 read[kAhead];
        read_ahead(entries, length, j, read);
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          const int there = read[k] == kNoVertex ? -1 : place(read[k]);
          if (there < 0) continue;
          ++found;
          of.counts.at_entry(vertex, j + 32 * k);
          if (there < shared) {
            atomicAdd(&of.hits[there], 1u);
          } else {
            of.counts.at_place(u, row, there, 1);
          }
        }
      }
      __syncwarp();
      found = __reduce_add_sync(kAll, found);
      if (lane == from) number = found;
    }

    DEVICE void done() {
      if (number) of.counts.at_larger(v, size, number);
      total += number;
    }
  };

  template <typename Place>
  DEVICE void visit(const Graph& g, i64 x, i64 begin, i64 end, const Row& row, int warp, int warps, const Place& place) {
    const bool block = warps > 1;
    const i64 u = larger.base + x;
    const int shared = block ? min(row.length, room) : 0;
    Found<Place> found = {*this, place, row, u, shared, kNoVertex, 0, 0, 0};
    for_prefixes(*this, g, x, begin, end, warp, warps, found);
    const u64 total = warp_sum(found.total);
    if (lane_id() == 0 && total) counts.at_own(u, total);
    if (!block) return;
    __syncthreads();
    for (int k = threadIdx.x; k < shared; k += blockDim.x) {
      if (!hits[k]) continue;
      counts.at_place(u, row, k, hits[k]);
      hits[k] = 0;
    }
  }

  // Make the shared counts zero, by a block.
  DEVICE void clear() const {
    for (int k = threadIdx.x; k < room; k += blockDim.x) hits[k] = 0;
  }
};
