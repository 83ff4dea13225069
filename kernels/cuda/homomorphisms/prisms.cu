// Count prisms, each at its largest vertex a; see longwall.kernels.cpu.homomorphisms.prisms, whose formula this is. A
// block counts for each a, with a warp for each smaller neighbour first, and then for each vertex with a row of the table.
#include "common.cuh"

struct Graph {
  const i64 *indptr, *split;
  const u32* indices;
};

// Workspace of a block; `places` and `rows` are all zero between two vertices a.
struct Buffers {
  u32 *places, *rows, *ends, *kept;  // of every vertex
  u32 *inner, *table;                // rows of the smaller neighbours, and of vertices that two of these are adjacent to
};

DEVICE void set_bit(u32* row, int at) { atomicOr(&row[at >> 5], 1u << (at & 31)); }

// How many vertices of a row are adjacent to one with the row `near`, less that at place `without`, if it is not -1.
DEVICE int seen(const u32* row, const u32* near, int width, int without) {
  int found = 0;
  for (int u = 0; u < width; ++u) found += __popc(row[u] & near[u]);
  if (without >= 0) found -= (row[without >> 5] & near[without >> 5]) >> (without & 31) & 1;
  return found;
}

// The prisms at an edge whose ends have these rows, and these places among the smaller neighbours of a, or -1.
DEVICE i64 prisms_at(const u32* one, const u32* other, const u32* inner, int width, int place_one, int place_other) {
  int both = 0;
  for (int u = 0; u < width; ++u) both += __popc(one[u] & other[u]);
  if (!both) return 0;
  i64 total = 0;
  for (int u = 0; u < width; ++u) {
    u32 rest = one[u];
    if (place_other >= 0 && place_other >> 5 == u) rest &= ~(1u << (place_other & 31));
    for (; rest; rest &= rest - 1) {
      const u32* near = inner + static_cast<i64>((u << 5) + __ffs(rest) - 1) * width;
      total += static_cast<i64>(both) * seen(other, near, width, place_one);
    }
    for (u32 common = one[u] & other[u]; common; common &= common - 1) {
      const u32* near = inner + static_cast<i64>((u << 5) + __ffs(common) - 1) * width;
      total -= seen(other, near, width, place_one) + seen(one, near, width, place_other);
    }
  }
  return total;
}

// Fill the rows of the smaller neighbours; dynamic_shared[1] becomes 1 if any two of these are adjacent.
DEVICE void fill_inner(const Graph& g, i64 own, int smaller, int width, const Buffers& buffers) {
  for (int i = threadIdx.x; i < smaller; i += blockDim.x) buffers.places[g.indices[own + i]] = i + 1;
  for (i64 w = threadIdx.x; w < static_cast<i64>(smaller) * width; w += blockDim.x) buffers.inner[w] = 0;
  __syncthreads();
  for (int i = warp_in_block(); i < smaller; i += blockDim.x >> 5) {
    const u32 x = g.indices[own + i];
    for (i64 at = g.indptr[x] + lane_id(); at < g.split[x]; at += 32) {
      const int j = static_cast<int>(buffers.places[g.indices[at]]) - 1;
      if (j < 0) continue;
      set_bit(buffers.inner + static_cast<i64>(i) * width, j);
      set_bit(buffers.inner + static_cast<i64>(j) * width, i);
      dynamic_shared[1] = 1;
    }
  }
  __syncthreads();
}

// List the vertices below a that are adjacent to any smaller neighbour in `ends`, dynamic_shared[2] of them, and those
// that are adjacent to two, dynamic_shared[3], in `kept`; fill the rows of these. `rows` has their number + 1, or 0.
DEVICE void fill_table(const Graph& g, u32 a, i64 own, int smaller, int width, const Buffers& buffers) {
  const int warp = warp_in_block(), warps = blockDim.x >> 5;
  for (int i = warp; i < smaller; i += warps) {
    const u32 x = g.indices[own + i];
    for (i64 at = g.indptr[x] + lane_id(); at < g.indptr[x + 1]; at += 32) {
      const u32 v = g.indices[at];
      if (v >= a) break;
      if (!atomicAdd(&buffers.rows[v], 1u)) buffers.ends[atomicAdd(&dynamic_shared[2], 1u)] = v;
    }
    __syncwarp();
  }
  __syncthreads();
  for (u32 e = threadIdx.x; e < dynamic_shared[2]; e += blockDim.x) {
    const u32 v = buffers.ends[e];
    if (buffers.rows[v] < 2) {
      buffers.rows[v] = 0;
    } else {
      const u32 k = atomicAdd(&dynamic_shared[3], 1u);
      buffers.kept[k] = v;
      buffers.rows[v] = k + 1;
      for (int u = 0; u < width; ++u) buffers.table[static_cast<i64>(k) * width + u] = 0;
    }
  }
  __syncthreads();
  for (int i = warp; i < smaller; i += warps) {
    const u32 x = g.indices[own + i];
    for (i64 at = g.indptr[x] + lane_id(); at < g.indptr[x + 1]; at += 32) {
      const u32 v = g.indices[at];
      if (v >= a) break;
      if (buffers.rows[v]) set_bit(buffers.table + static_cast<i64>(buffers.rows[v] - 1) * width, i);
    }
    __syncwarp();
  }
  __syncthreads();
}

// Count the prisms whose a is one of the vertices first to last - 1. vertices: u32[blocks][4][num_vertices], all zero;
// store: u32[blocks][store_words], the first inner_words of which are for rows of smaller neighbours.
extern "C" __global__ void __launch_bounds__(256)
    count_prisms(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 first, i64 last,
                 u32* vertices, u32* store, i64 store_words, i64 inner_words, u32* next, const u32* stop, u64* result) {
  const Graph g = {indptr, split, indices};
  u32* own_vertices = vertices + blockIdx.x * 4 * num_vertices;
  u32* own_store = store + blockIdx.x * store_words;
  const Buffers buffers = {own_vertices,
                           own_vertices + num_vertices,
                           own_vertices + 2 * num_vertices,
                           own_vertices + 3 * num_vertices,
                           own_store,
                           own_store + inner_words};
  WideSum sum;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) {
      dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
      dynamic_shared[1] = dynamic_shared[2] = dynamic_shared[3] = 0;
    }
    __syncthreads();
    const i64 a = first + dynamic_shared[0];
    if (a >= last) break;
    const i64 own = indptr[a];
    const int smaller = static_cast<int>(split[a] - own), width = (smaller + 31) >> 5;
    if (smaller < 3) continue;
    fill_inner(g, own, smaller, width, buffers);
    if (dynamic_shared[1]) {
      fill_table(g, static_cast<u32>(a), own, smaller, width, buffers);
      // The prisms of one vertex take minutes in a dense graph, so the flag is read for each row.
      for (u32 k = warp_in_block(); k < dynamic_shared[3] && !stop_asked(stop); k += blockDim.x >> 5) {
        const u32 y = buffers.kept[k];
        const u32* row = buffers.table + static_cast<i64>(k) * width;
        for (i64 at = indptr[y] + lane_id(); at < split[y]; at += 32) {
          const u32 w = indices[at];
          if (!buffers.rows[w]) continue;
          const u32* other = buffers.table + static_cast<i64>(buffers.rows[w] - 1) * width;
          const int place_y = static_cast<int>(buffers.places[y]) - 1, place_w = static_cast<int>(buffers.places[w]) - 1;
          sum.add_signed(prisms_at(row, other, buffers.inner, width, place_y, place_w));
        }
        __syncwarp();
      }
      __syncthreads();
      for (u32 e = threadIdx.x; e < dynamic_shared[2]; e += blockDim.x) buffers.rows[buffers.ends[e]] = 0;
    }
    for (int i = threadIdx.x; i < smaller; i += blockDim.x) buffers.places[indices[own + i]] = 0;
  }
  sum.add_lanes_to(result);
}
