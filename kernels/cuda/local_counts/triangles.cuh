// Find triangles by looking lists up from their other ends: for `for_prefixes`.
#pragma once
#include "local_counts/prefixes.cuh"

// Count the triangles whose arc from the largest vertex to the middle one is one of first to last - 1 of the rows' graph.
struct Triangles {
  const i64* indptr;
  i64 first, last;
  u64 total;  // each lane has its part

  DEVICE bool wants(const Prefix& prefix) const {
    const i64 arc = indptr[prefix.v] + prefix.size;
    return arc >= first && arc < last;
  }

  template <typename Place>
  DEVICE void scan(const Prefix& prefix, const Place& place, bool) {
    u32 found = 0;
    for (int j = lane_id(); j < prefix.size; j += 32 * kAhead) {
      u32 read[kAhead];
      read_ahead(prefix.entries, prefix.size, j, read);
#pragma unroll
      for (int k = 0; k < kAhead; ++k)
        if (read[k] != kNoVertex) found += place(read[k]) >= 0;
    }
    total += found;
  }

  DEVICE void flush(const Prefix&) {}
};

// Count triangles at their corners or sides. `Counts` says whether a prefix counts (wants), and takes what is found: a
// triangle at entry j of the list of v (at_entry); the triangles of v and u (at_larger); some of u (at_own); and those of u
// and its out-neighbour k (at_place), which for the first `room` of these are added up in `hits`, in shared memory.
template <typename Counts>
struct TriangleCorners {
  Counts counts;
  u32* hits;
  int capacity;
  u32 own;  // triangles of u that this warp found

  DEVICE bool wants(Prefix& prefix) const { return counts.wants(prefix); }

  template <typename Place>
  DEVICE void scan(const Prefix& prefix, const Place& place, bool shared) {
    u32 found = 0;
    for (int j = lane_id(); j < prefix.size; j += 32 * kAhead) {
      u32 read[kAhead];
      read_ahead(prefix.entries, prefix.size, j, read);
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int there = read[k] == kNoVertex ? -1 : place(read[k]);
        if (there < 0) continue;
        ++found;
        counts.at_entry(prefix, j + 32 * k);
        if (shared && there < capacity) {
          atomicAdd(&hits[there], 1u);
        } else {
          counts.at_place(prefix, there, 1);
        }
      }
    }
    __syncwarp();
    found = __reduce_add_sync(kAll, found);
    if (lane_id() == 0 && found) {
      counts.at_larger(prefix, found);
      if (!shared) counts.at_own(prefix, found);
    }
    if (shared) own += found;
  }

  // What a block found of u.
  DEVICE void flush(const Prefix& prefix) {
    if (lane_id() == 0 && own) counts.at_own(prefix, own);
    own = 0;
    for (int k = threadIdx.x; k < min(prefix.length, capacity); k += blockDim.x) {
      if (!hits[k]) continue;
      counts.at_place(prefix, k, hits[k]);
      hits[k] = 0;
    }
  }

  // Make the shared counts zero, by a block.
  DEVICE void clear() const {
    for (int k = threadIdx.x; k < capacity; k += blockDim.x) hits[k] = 0;
  }
};
