// Count the triangles of arcs, and the pairs of them that share an edge: diamonds.
#include "prefixes.cuh"
#include "triangles.cuh"

// Counts of the arcs to smaller neighbours alone: those of a vertex begin at starts[vertex], and are counted from `first`
// on, as many as there is room for.
struct HalfCounts {
  u32* values;
  const i64* starts;
  u64 first, size;

  DEVICE void add(u64 at, u32 number) const {
    if (at - first < size) atomicAdd(&values[at - first], number);
  }
};

// The triangles of a vertex u and larger ones v: at the arcs of v that lead to u and to out-neighbours of both, and at the
// arcs of u to these. Of the latter the first `room` are counted in shared memory.
struct Triangles : Prefixes {
  HalfCounts counts;
  u32* hits;
  int room;

  template <typename Place>
  struct Arcs {
    const Triangles& of;
    const Place& place;
    i64 own;     // where the counts of u begin
    int shared;  // how many of them are in shared memory
    i64 start;   // where those of the lane's vertex begin
    int size;    // the place of u in its list
    u32 number;  // triangles of both

    DEVICE bool take(u32 v, int at) {
      start = v == kNoVertex ? 0 : of.counts.starts[v];
      size = at;
      number = 0;
      return v != kNoVertex;
    }

    DEVICE void scan(const u32* entries, int length, int from) {
      const int lane = lane_id();
      const i64 other = __shfl_sync(kAll, start, from);
      u32 found = 0;
      for (int j = lane; j < length; j += 32 * kAhead) {
        u32 read[kAhead];
        read_ahead(entries, length, j, read);
#pragma unroll
        for (int k = 0; k < kAhead; ++k) {
          const int there = read[k] == kNoVertex ? -1 : place(read[k]);
          if (there < 0) continue;
          ++found;
          of.counts.add(other + j + 32 * k, 1);
          if (there < shared) {
            atomicAdd(&of.hits[there], 1u);
          } else {
            of.counts.add(own + there, 1);
          }
        }
      }
      __syncwarp();
      found = __reduce_add_sync(kAll, found);
      if (lane == from) number = found;
    }

    DEVICE void done() {
      if (number) of.counts.add(start + size, number);
    }
  };

  template <typename Place>
  DEVICE void visit(const Graph& g, i64 u, i64 begin, i64 end, const Row& row, int warp, int warps, const Place& place) {
    const bool block = warps > 1;
    const int shared = block ? min(row.length, room) : 0;
    Arcs<Place> arcs = {*this, place, counts.starts[u], shared, 0, 0, 0};
    for_prefixes(g, rows, u, begin, end, warp, warps, arcs);
    if (!block) return;
    __syncthreads();
    for (int k = threadIdx.x; k < shared; k += blockDim.x) {
      if (!hits[k]) continue;
      counts.add(arcs.own + k, hits[k]);
      hits[k] = 0;
    }
  }
};

// Add the triangles of all arcs between vertices from `low` on; each lane of a block has a part of what is looked up.
extern "C" __global__ void __launch_bounds__(256, 6)
    add_triangles(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 low, i64 size, i64 words,
                  i64 room, u32* next, const u32* stop, u32* counts, const i64* starts, u64 first_count,
                  u64 num_counts) {
  u32* hits = dynamic_shared + 4 + 2 * words;
  for (i64 k = threadIdx.x; k < room; k += blockDim.x) hits[k] = 0;
  Triangles kind = {{{indptr, indices, split, nullptr}, low, num_vertices},
                    {counts, starts, first_count, num_counts},
                    hits,
                    static_cast<int>(room)};
  for_arcs<true>(Graph{indptr, indices, split, num_vertices}, kind,
                 {0, indptr[num_vertices], size, words, next, stop});
}

extern "C" __global__ void __launch_bounds__(256, 2)
    add_light(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices, i64 first,
              i64 last, i64 low, i64 high, u32* next, const u32* stop, u32* counts, u64 first_count, u64 num_counts,
              i64 largest, i64 smaller) {
  light_vertices<ArcCounts>({indptr, indices, split, places}, num_vertices, first, last, {low, high}, next, stop,
                            {counts, first_count, num_counts, largest != 0, smaller != 0});
}

extern "C" __global__ void __launch_bounds__(256, 2)
    add_heavy(const i64* indptr, const u32* indices, const i64* split, const i64* places, const u32* tasks,
              const u32* num_tasks, i64 first, i64 last, i64 low, i64 high, u32* next, const u32* stop, u32* counts,
              u64 first_count, u64 num_counts, i64 largest, i64 smaller) {
  heavy_vertices<ArcCounts>({indptr, indices, split, places}, tasks, num_tasks, first, last, {low, high}, next, stop,
                            {counts, first_count, num_counts, largest != 0, smaller != 0});
}

// Add the pairs of triangles of each of the arcs.
extern "C" __global__ void __launch_bounds__(256) add_pairs(const u32* counts, i64 number, u64* parts) {
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  u64 low = 0, high = 0;  // halves of the pairs, which are added apart: 2^32 arcs of 2^31 pairs fit
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < number; i += threads) {
    const u64 triangles = counts[i], pairs = triangles ? triangles * (triangles - 1) / 2 : 0;
    low += pairs & 0xffffffffull;
    high += pairs >> 32;
  }
  low = warp_sum(low);
  high = warp_sum(high);
  if (lane_id() == 0 && low) atomicAdd(&parts[0], low);
  if (lane_id() == 0 && high) atomicAdd(&parts[1], high);
}
