// The arcs first to last - 1 from their other ends: for each of the vertices low to high - 1 those vertices whose
// out-neighbour it is, together, in no order. Vertices of fewer than `least` out-neighbours have no arcs.
#include "local_counts/smaller_lists.cuh"

constexpr int kOwners = 8;  // of lists that a warp looks at together: few, since there may be few in all

// Call visit(v, u, place of u in the list of v) for each of them, a lane for each arc.
template <typename Visit>
DEVICE void for_arcs_to(const Rows& graph, i64 num_vertices, i64 first, i64 last, i64 least, i64 low, i64 high,
                        Visit visit) {
  const int lane = lane_id();
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  const i64 warp = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
  const VertexRange range = vertices_of_slots(graph.indptr, num_vertices, first, last);
  for (i64 base = range.begin + kOwners * warp; base < range.end; base += kOwners * warps) {
    const i64 v = base + lane;
    List own = {nullptr, 0};
    int skipped = 0;
    if (lane < kOwners && v < range.end && v > low && graph.split[v] - graph.indptr[v] >= least) {
      const i64 row = graph.indptr[v];
      own = list_of(graph, static_cast<u32>(v));
      const int begin = static_cast<int>(max(first - row, i64(0)));
      const int end = static_cast<int>(min(last - row, i64(own.length)));
      own = {own.entries + begin, max(end - begin, 0)};
      if (v > high) own.length = lower_bound(own.entries, own.length, static_cast<u32>(high));
      const int before = low ? lower_bound(own.entries, own.length, static_cast<u32>(low)) : 0;
      own = {own.entries + before, own.length - before};
      skipped = begin + before;
    }
    for (u32 todo = __ballot_sync(kAll, own.length > 0); todo; todo &= todo - 1) {
      const int i = __ffs(todo) - 1;
      const List list = list_of_lane(own, i);
      const u32 at = __shfl_sync(kAll, skipped, i);
      for (int j = lane; j < list.length; j += 32) visit(static_cast<u32>(base + i), list.entries[j], at + j);
    }
  }
}

// counts: u32[high - low], zeros.
extern "C" __global__ void __launch_bounds__(256)
    count_reverse(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices, i64 first,
                  i64 last, i64 least, i64 low, i64 high, u32* counts) {
  for_arcs_to({indptr, indices, split, places}, num_vertices, first, last, least, low, high,
              [&](u32, u32 u, u32) { atomicAdd(&counts[u - low], 1u); });
}

// Change the counts of arcs to the places where the arcs to each vertex begin. Each range of vertices has its first vertex,
// and the place where its arcs begin, one vertex after the other in no order; all[range], 0 before, becomes their number.
extern "C" __global__ void __launch_bounds__(256)
    start_reverse(u32* counts, i64 number, i64 first_0, i64 base_0, i64 first_1, i64 base_1, i64 first_2, i64 base_2,
                  i64 first_3, i64 base_3, i64 first_4, i64 base_4, i64 first_5, i64 base_5, i64 first_6, i64 base_6,
                  i64 first_7, i64 base_7, u64* all) {
  const i64 firsts[kVertexRanges] = {first_0, first_1, first_2, first_3, first_4, first_5, first_6, first_7};
  const i64 bases[kVertexRanges] = {base_0, base_1, base_2, base_3, base_4, base_5, base_6, base_7};
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 begin = static_cast<i64>(blockIdx.x) * blockDim.x + 32 * warp_in_block(); begin < number; begin += threads) {
    const i64 x = begin + lane_id();
    const u32 own = x < number ? counts[x] : 0;
    int range = 0;
    i64 base = bases[0];
#pragma unroll
    for (int k = 1; k < kVertexRanges; ++k) {
      if (x < firsts[k]) continue;
      range = k;
      base = bases[k];
    }
    const int first_range = __shfl_sync(kAll, range, 0), last_range = __shfl_sync(kAll, range, 31);
    if (first_range != last_range) {
      if (own) counts[x] = static_cast<u32>(base + atomicAdd(&all[range], static_cast<u64>(own)));
      continue;
    }
    const u32 upto = warp_prefix_sum(own);
    u64 start = lane_id() == 31 && upto ? atomicAdd(&all[range], static_cast<u64>(upto)) : 0;
    start = __shfl_sync(kAll, start, 31);
    if (own) counts[x] = static_cast<u32>(base + start) + upto - own;
  }
}

// starts: as above; afterwards, where those of each vertex end. arcs: u32[][2], the place of u in the list of v, and v.
extern "C" __global__ void __launch_bounds__(256)
    place_reverse(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices, i64 first,
                  i64 last, i64 least, i64 low, i64 high, u32* starts, u64* arcs) {
  for_arcs_to({indptr, indices, split, places}, num_vertices, first, last, least, low, high,
              [&](u32 v, u32 u, u32 place) { arcs[atomicAdd(&starts[u - low], 1u)] = static_cast<u64>(v) << 32 | place; });
}
