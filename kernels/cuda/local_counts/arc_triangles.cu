// Count, or list, the common neighbours of the ends of every arc; see longwall.kernels.cpu.local_counts.arc_triangles
// and longwall.kernels.cpu.homomorphisms.tables.
//
// An edge is found at its smaller end x, which has no lower degree unless the graph is laid out by label: the neighbours of
// the larger end are looked up among those of x, or the other way round if they are many more.
#include "local_counts/arc_tasks.cuh"

constexpr int kSkew = 32;        // a list that is this many times as long as the other one is searched, not read
constexpr int kListsOfLane = 4;  // lists whose begins a lane writes at once

// Writes the numbers of both arcs of every edge, or lists.
template <bool LIST, typename Number = u32>
struct Common {
  Number* triangles;  // counts are written here,
  const i64* starts;  // or lists from here on
  u32* common;

  DEVICE Row row(const Graph& g, i64 x) const {
    return {g.indices + g.indptr[x], static_cast<int>(g.indptr[x + 1] - g.indptr[x])};
  }

  DEVICE i64 begin(const Graph& g, i64 x) const { return g.split[x]; }

  template <typename Place>
  DEVICE void visit(const Graph& g, i64 x, i64 begin, i64 end, const Row& near, int warp, int warps, const Place& place) {
    const int lane = lane_id(), step = arcs_at_once(end - begin, warps);
    const i64 own = g.indptr[x];
    for (i64 base = begin + static_cast<i64>(step) * warp; base < end; base += static_cast<i64>(step) * warps) {
      // The lanes fetch the next rows' bounds together.
      const bool in = lane < step && base + lane < end;
      const u32 v = in ? g.indices[base + lane] : 0;
      const i64 row = in ? g.indptr[v] : 0;
      int length = in ? static_cast<int>(g.indptr[v + 1] - row) : 0;
      const i64 back = in ? row + lower_bound(g.indices + row, length, static_cast<u32>(x)) : 0;
      const i64 at = LIST && in ? starts[base + lane] : 0, back_at = LIST && in ? starts[back] : 0;
      if (LIST && in && starts[base + lane + 1] == at) length = 0;
      u32 own_found = 0;
      // The first entries of the next row are read before those of this one are looked up.
      u32 todo = __ballot_sync(kAll, length > 0);
      int i = todo ? __ffs(todo) - 1 : 0;
      i64 from = __shfl_sync(kAll, row, i);
      int size = __shfl_sync(kAll, length, i);
      u32 first = lane < size ? g.indices[from + lane] : 0;
      while (todo) {
        todo &= todo - 1;
        const int next = todo ? __ffs(todo) - 1 : 0;
        const i64 next_from = __shfl_sync(kAll, row, next);
        const int next_size = todo ? __shfl_sync(kAll, length, next) : 0;
        const u32 next_first = lane < next_size ? g.indices[next_from + lane] : 0;
        const i64 to = LIST ? __shfl_sync(kAll, at, i) : 0, back_to = LIST ? __shfl_sync(kAll, back_at, i) : 0;
        u32 found = 0;
        if (size / kSkew > near.length) {
          for (int j = lane; j - lane < near.length; j += 32) {
            const u32 entry = j < near.length ? near.entries[j] : kNoVertex;
            const int there = lower_bound(g.indices + from, size, entry);
            const bool hit = there < size && g.indices[from + there] == entry;
            const u32 hits = __ballot_sync(kAll, hit);
            if (LIST && hit) {
              const u32 k = found + __popc(hits & lanes_before());
              common[to + k] = static_cast<u32>(own + j);
              common[back_to + k] = static_cast<u32>(from + there);
            }
            found += __popc(hits);
          }
          size = 0;
        }
        for (int j = lane; j - lane < size; j += 32) {
          const int there = j < size ? place(j == lane ? first : g.indices[from + j]) : -1;
          const u32 hits = __ballot_sync(kAll, there >= 0);
          if (LIST && there >= 0) {
            const u32 k = found + __popc(hits & lanes_before());
            common[to + k] = static_cast<u32>(own + there);
            common[back_to + k] = static_cast<u32>(from + j);
          }
          found += __popc(hits);
        }
        if (lane == i) own_found = found;
        i = next;
        from = next_from;
        size = next_size;
        first = next_first;
      }
      if (!LIST && in) {
        triangles[base + lane] = own_found;
        triangles[back] = own_found;
      }
    }
  }
};

extern "C" __global__ void __launch_bounds__(256, 6)
    count_arc_triangles(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 size, i64 words,
                        u32* next, const u32* stop, u32* triangles) {
  Common<false> kind = {triangles, nullptr, nullptr};
  for_arcs<false>(Graph{indptr, indices, split, num_vertices}, kind,
                  {0, indptr[num_vertices], size, words, next, stop});
}

// The same in 64 bits.
extern "C" __global__ void __launch_bounds__(256, 6)
    triangles_of_arcs(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 size, i64 words,
                      u32* next, const u32* stop, i64* triangles) {
  Common<false, i64> kind = {triangles, nullptr, nullptr};
  for_arcs<false>(Graph{indptr, indices, split, num_vertices}, kind,
                  {0, indptr[num_vertices], size, words, next, stop});
}

// The lists of arc a begin at common[starts[a]]: the places of the arcs from its first vertex to the common neighbours.
extern "C" __global__ void __launch_bounds__(256, 6)
    list_common(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 size, i64 words, u32* next,
                const u32* stop, const i64* starts, u32* common) {
  Common<true> kind = {nullptr, starts, common};
  for_arcs<true>(Graph{indptr, indices, split, num_vertices}, kind,
                 {0, indptr[num_vertices], size, words, next, stop});
}

// Add up the lengths of each chunk of lists, a warp for each, and set found[0], which is 0 before, to the largest length.
extern "C" __global__ void __launch_bounds__(256)
    sum_lists(const u32* lengths, i64 num_arcs, i64 chunk, u64* found, u64* sums) {
  const i64 warps = static_cast<i64>(gridDim.x) * kWarps;
  u32 most = 0;
  for (i64 c = static_cast<i64>(blockIdx.x) * kWarps + warp_in_block(); c * chunk < num_arcs; c += warps) {
    u64 sum = 0;
    for (i64 arc = c * chunk + lane_id(); arc < min((c + 1) * chunk, num_arcs); arc += 32) {
      sum += lengths[arc];
      most = max(most, lengths[arc]);
    }
    sum = warp_sum(sum);
    if (lane_id() == 0) sums[c] = sum;
  }
  for (int distance = 16; distance; distance >>= 1) most = max(most, __shfl_xor_sync(kAll, most, distance));
  if (lane_id() == 0) atomicMax(found, static_cast<u64>(most));
}

// Write where each list begins, a warp for each chunk; starts[num_arcs] and found[1] are where the last list ends.
extern "C" __global__ void __launch_bounds__(256)
    place_lists(const u32* lengths, i64 num_arcs, i64 chunk, u64* found, const u64* sums, i64* starts) {
  const i64 warps = static_cast<i64>(gridDim.x) * kWarps;
  for (i64 c = static_cast<i64>(blockIdx.x) * kWarps + warp_in_block(); c * chunk < max(num_arcs, i64(1)); c += warps) {
    const i64 last = min((c + 1) * chunk, num_arcs);
    u64 at = 0;
    for (i64 other = lane_id(); other < c; other += 32) at += sums[other];
    at = __shfl_sync(kAll, warp_sum(at), 0);
    for (i64 base = c * chunk; base < last; base += 32 * kListsOfLane) {
      const i64 first = base + kListsOfLane * lane_id();
      u32 own[kListsOfLane];
      u64 sum = 0;
      for (int i = 0; i < kListsOfLane; i++) {
        own[i] = first + i < last ? lengths[first + i] : 0;
        sum += own[i];
      }
      const u64 end = at + warp_prefix_sum(sum);
      at = end - sum;
      for (int i = 0; i < kListsOfLane; i++) {
        if (first + i < last) starts[first + i] = static_cast<i64>(at);
        at += own[i];
      }
      at = __shfl_sync(kAll, end, 31);
    }
    if (last == num_arcs && lane_id() == 0) starts[num_arcs] = found[1] = at;
  }
}

// The largest sum of the numbers of a vertex' arcs.
extern "C" __global__ void __launch_bounds__(256)
    largest_row(const i64* indptr, i64 num_vertices, const u32* triangles, u64* most) {
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  for (i64 v = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); v < num_vertices; v += warps) {
    u64 found = 0;
    for (i64 arc = indptr[v] + lane_id(); arc < indptr[v + 1]; arc += 32) found += triangles[arc];
    found = warp_sum(found);
    if (lane_id() == 0) atomicMax(most, found);
  }
}
