// Count, or list, the common neighbours of the ends of every arc; see longwall.kernels.cpu.local_counts.arc_triangles
// and longwall.kernels.cpu.homomorphisms.tables.
//
// An edge is found at its smaller end x, which has no lower degree: the neighbours of the larger end are looked up among
// those of x. A block keeps these as a bitmap in shared memory; where x has few, warps search among them.
#include "row_bitmap.cuh"

constexpr int kFew = 64;       // neighbours of a vertex that are searched
constexpr i64 kVertices = 32;  // of few neighbours, that a warp takes at once

struct Arcs {
  const i64* indptr;
  const u32* indices;
  const i64* split;
  u32* triangles;       // counts are written here,
  const i64* starts;    // or lists from here on
  u32* common;
};

// The arcs of x to larger vertices, `step` at once for each of some warps; place(y) is that of y among x' neighbours.
template <bool LIST, typename Place>
DEVICE void visit_arcs(const Arcs& g, u32 x, int warp, int warps, int step, const Place& place) {
  const int lane = lane_id();
  const i64 own = g.indptr[x], end = g.indptr[x + 1];
  for (i64 base = g.split[x] + static_cast<i64>(step) * warp; base < end; base += static_cast<i64>(step) * warps) {
    // The lanes fetch the next rows' bounds together.
    const int active = static_cast<int>(min(end - base, static_cast<i64>(step)));
    const bool in = lane < active;
    const u32 v = in ? g.indices[base + lane] : 0;
    const i64 row = in ? g.indptr[v] : 0;
    int length = in ? static_cast<int>(g.indptr[v + 1] - row) : 0;
    const i64 back = in ? row + lower_bound(g.indices + row, length, x) : 0;
    const i64 at = LIST && in ? g.starts[base + lane] : 0, back_at = LIST && in ? g.starts[back] : 0;
    if (LIST && in && g.starts[base + lane + 1] == at) length = 0;
    u32 own_found = 0;
    for (int i = 0; i < active; ++i) {
      const i64 begin = __shfl_sync(kAll, row, i);
      const int size = __shfl_sync(kAll, length, i);
      const i64 to = LIST ? __shfl_sync(kAll, at, i) : 0, back_to = LIST ? __shfl_sync(kAll, back_at, i) : 0;
      u32 found = 0;
      for (int j = lane; j - lane < size; j += 32) {
        const int there = j < size ? place(g.indices[begin + j]) : -1;
        const u32 hits = __ballot_sync(kAll, there >= 0);
        if (LIST && there >= 0) {
          const u32 k = found + __popc(hits & lanes_before());
          g.common[to + k] = static_cast<u32>(own + there);
          g.common[back_to + k] = static_cast<u32>(begin + j);
        }
        found += __popc(hits);
      }
      if (lane == i) own_found = found;
    }
    if (!LIST && in) {
      g.triangles[base + lane] = own_found;
      g.triangles[back] = own_found;
    }
  }
}

// Take vertices one after the other: a block each, until one has few neighbours; from then on a warp each.
template <bool LIST>
DEVICE void all_arcs(const Arcs& g, i64 num_vertices, i64 words, u32* next, const u32* stop) {
  const int warps = blockDim.x >> 5;
  u32 *bits = dynamic_shared + 4, *before = bits + words;
  for (i64 w = threadIdx.x; w < words; w += blockDim.x) bits[w] = 0;
  i64 taken;
  for (;;) {
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
    __syncthreads();
    taken = dynamic_shared[0];
    if (taken >= num_vertices) return;
    const u32 x = static_cast<u32>(taken);
    const Row row = {g.indices + g.indptr[x], static_cast<int>(g.indptr[x + 1] - g.indptr[x])};
    if (row.length <= kFew) break;
    const i64 larger = g.indptr[x + 1] - g.split[x];
    if (larger) {
      const Bitmap<LIST> place = fill_bitmap<LIST>(row, num_vertices, words, bits, before);
      __syncthreads();
      const int step = static_cast<int>(min(max((larger + warps - 1) / warps, i64(4)), i64(32)));
      visit_arcs<LIST>(g, x, warp_in_block(), warps, step, place);
      __syncthreads();
      clear_bitmap(place, bits);
    } else {
      __syncthreads();
    }
  }
  i64 first = taken, last = warp_in_block() ? taken : taken + 1;
  for (;;) {
    for (i64 v = first; v < last; ++v) {
      const u32 x = static_cast<u32>(v);
      visit_arcs<LIST>(g, x, 0, 1, 32, Row{g.indices + g.indptr[x], static_cast<int>(g.indptr[x + 1] - g.indptr[x])});
    }
    first = take(next, kVertices);
    last = min(first + kVertices, num_vertices);
    if (first >= num_vertices || stop_asked(stop)) return;
  }
}

extern "C" __global__ void __launch_bounds__(1024)
    count_arc_triangles(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 words, u32* next,
                        const u32* stop, u32* triangles) {
  all_arcs<false>({indptr, indices, split, triangles, nullptr, nullptr}, num_vertices, words, next, stop);
}

// The lists of arc a begin at common[starts[a]]: the places of the arcs from its first vertex to the common neighbours.
extern "C" __global__ void __launch_bounds__(1024)
    list_common(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 words, u32* next,
                const u32* stop, const i64* starts, u32* common) {
  all_arcs<true>({indptr, indices, split, nullptr, starts, common}, num_vertices, words, next, stop);
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
