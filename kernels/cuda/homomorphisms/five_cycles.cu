// Count cycles by the wedges from their smallest vertex v to larger ones, grouped by their ends; a block for each v.
//
// Ids are degree ranks, so most ends are small ids just beyond v: their counters are in shared memory, the other ones in
// the block's part of a store.
#include "wedge_windows.cuh"

struct Counters {
  u32 *near, *far;
  i64 v, window;

  DEVICE u32& at(u32 vertex) const {
    const i64 offset = vertex - v - 1;
    return offset < window ? near[offset] : far[vertex];
  }
};

struct Graph {
  const i64* indptr;
  const u32* indices;
  const i64* split;
};

// Call visit(i, j) for the arcs i = (v, a) and j = (a, b), a, b > v; a warp for each i, which begins(i) and ends(i).
template <typename Visit, typename End>
DEVICE void for_wedges(const Graph& graph, i64 v, Visit visit, End end) {
  for (i64 i = graph.split[v] + warp_in_block(); i < graph.indptr[v + 1]; i += blockDim.x >> 5) {
    const i64 a = graph.indices[i], first = graph.indptr[a];
    // Rows ascend, so the vertices beyond v stand at the end.
    for (i64 j = graph.indptr[a + 1] - 1 - lane_id(); j >= first && graph.indices[j] > v; j -= 32) visit(i, j);
    __syncwarp();
    end(i);
  }
}

// Take the next vertex for the block; `last` or more, if there is none.
DEVICE i64 next_vertex(i64 first, u32* next, const u32* stop) {
  __syncthreads();
  if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
  __syncthreads();
  return first + dynamic_shared[0];
}

// Whether v has more than `many` wedges; for a whole block.
DEVICE bool has_many_wedges(const Graph& graph, i64 v, i64 many) {
  u32* enough = dynamic_shared + 1;
  if (threadIdx.x == 0) *enough = 0;
  __syncthreads();
  i64 found = 0;
  for (i64 i = graph.split[v] + threadIdx.x; i < graph.indptr[v + 1]; i += blockDim.x) {
    const i64 row = graph.indptr[graph.indices[i]], end = graph.indptr[graph.indices[i] + 1];
    found += end - row - lower_bound(graph.indices + row, end - row, static_cast<u32>(v));
  }
  // Of a warp's lanes one adds; no sum of 32 lanes passes 32 bits.
  found = warp_sum(min(found, many + 1));
  if (lane_id() == 0 && found) atomicAdd(enough, static_cast<u32>(min(found, many + 1)));
  __syncthreads();
  return *enough > many;
}

// Count by ends, then call visit(arc, cycles) for all wedges and end(own) after those of an arc of v, and clear; through
// the vertices behind v in windows.
template <typename Visit, typename End>
DEVICE void for_windows(const Graph& graph, i64 v, i64 num_vertices, i64 window, u32* near, Visit visit, End end) {
  for (i64 low = v + 1; low < num_vertices; low += window) {
    const u32 first = static_cast<u32>(low), last = static_cast<u32>(min(low + window, num_vertices));
    for_wedges_between(
        graph, v, first, last, [&](i64 arc) { atomicAdd(&near[graph.indices[arc] - first], 1u); }, [](i64) {});
    __syncthreads();
    for_wedges_between(graph, v, first, last, [&](i64 arc) { visit(arc, near[graph.indices[arc] - first] - 1); }, end);
    __syncthreads();
    for (u32 i = threadIdx.x; i < last - first; i += blockDim.x) near[i] = 0;
    __syncthreads();
  }
}

// Add the 4-cycles whose smallest vertex is first to last - 1 to counts, at an arc of each of their edges: a wedge of c
// with the same ends is in c - 1 cycles. Vertices of more than `many` wedges go through the others in windows.
extern "C" __global__ void __launch_bounds__(1024, 1)
    cycles_of_arcs(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 first, i64 last,
                   i64 window, i64 many, u32* store, u32* next, const u32* stop, u64* counts) {
  const Graph graph = {indptr, indices, split};
  Counters wedges = {dynamic_shared + 4, store + (window < num_vertices ? blockIdx.x * num_vertices : 0), 0, window};
  for (i64 i = threadIdx.x; i < window; i += blockDim.x) wedges.near[i] = 0;
  for (;;) {
    const i64 v = next_vertex(first, next, stop);
    if (v >= last) break;
    wedges.v = v;
    u64 own = 0;
    const auto add = [&](i64 arc, u64 cycles) {
      if (cycles) atomicAdd(&counts[arc], cycles);
      own += cycles;
    };
    const auto add_own = [&](i64 i) {
      own = warp_sum(own);
      if (lane_id() == 0 && own) atomicAdd(&counts[i], own);
      own = 0;
    };
    if (v + 1 + window < num_vertices && has_many_wedges(graph, v, many)) {
      for_windows(graph, v, num_vertices, window, wedges.near, add, add_own);
      continue;
    }
    for_wedges(graph, v, [&](i64, i64 j) { atomicAdd(&wedges.at(indices[j]), 1u); }, [](i64) {});
    __syncthreads();
    for_wedges(graph, v, [&](i64, i64 j) { add(j, wedges.at(indices[j]) - 1); }, add_own);
    __syncthreads();
    for_wedges(graph, v, [&](i64, i64 j) { wedges.at(indices[j]) = 0; }, [](i64) {});
  }
}

// Count the 5-cycles whose smallest vertex is first to last - 1; see count_five_cycles of the CPU engine.
extern "C" __global__ void __launch_bounds__(1024, 1)
    five_cycles(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 first, i64 last,
                i64 window, u32* store, u32* all_ends, u32* next, const u32* stop, u64* result) {
  const Graph graph = {indptr, indices, split};
  u32* own_store = store + (window < num_vertices ? blockIdx.x * 2 * num_vertices : 0);
  Counters wedges = {dynamic_shared + 4, own_store, 0, window};
  Counters places = {dynamic_shared + 4 + window, own_store + num_vertices, 0, window};
  u32* ends = all_ends + blockIdx.x * num_vertices;
  u32* found = dynamic_shared + 1;
  u64 total = 0;
  double estimate = 0;
  for (i64 i = threadIdx.x; i < 2 * window; i += blockDim.x) wedges.near[i] = 0;
  for (;;) {
    const i64 v = next_vertex(first, next, stop);
    if (v >= last) break;
    wedges.v = places.v = v;
    if (threadIdx.x == 0) *found = 0;
    const i64 smaller = split[v] - indptr[v];
    for (i64 i = split[v] + threadIdx.x; i < indptr[v + 1]; i += blockDim.x) {
      const u32 x = indices[i];
      places.at(x) = 1 + lower_bound(indices + indptr[x], indptr[x + 1] - indptr[x], static_cast<u32>(v));
    }
    __syncthreads();
    for_wedges(
        graph, v,
        [&](i64 i, i64 j) {
          const u32 a = indices[i], b = indices[j];
          if (atomicAdd(&wedges.at(b), 1u) == 0) ends[atomicAdd(found, 1u)] = b;
          if (b > a && places.at(b)) total -= smaller + places.at(a) + places.at(b) - 2;
        },
        [](i64) {});
    __syncthreads();
    for (u32 e = warp_in_block(); e < *found; e += blockDim.x >> 5) {
      const u32 b = ends[e];
      const i64 own = wedges.at(b), beside = places.at(b) > 0;
      for (i64 j = split[b] - 1 - lane_id(); j >= indptr[b] && indices[j] > v; j -= 32) {
        const u32 c = indices[j];
        if (const i64 other = wedges.at(c)) {
          const i64 part = (own - (places.at(c) > 0)) * (other - beside);
          total += part;
          estimate += part;
        }
      }
      __syncwarp();
    }
    __syncthreads();
    for (u32 e = threadIdx.x; e < *found; e += blockDim.x) wedges.at(ends[e]) = 0;
    for (i64 i = split[v] + threadIdx.x; i < indptr[v + 1]; i += blockDim.x) places.at(indices[i]) = 0;
  }
  add_result(result, total, estimate);
}
