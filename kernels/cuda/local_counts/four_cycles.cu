// Count 4-cycles without enumerating them: the wedges v - x - y with x, y > v are counted by their end y, and
// every two wedges with the same ends are a cycle, found at its smallest vertex (the one of highest degree).
#include "hash_table.cuh"
#include "wedge_windows.cuh"

constexpr u32 kWarpSlots = 2 * kLightWedges;

struct Rows {
  const i64* indptr;
  const u32* indices;
  const i64* split;
};

// Call visit(y) for the wedges' ends, each lane for its own; the warps of a block share out the middle vertices.
template <typename Visit>
DEVICE void for_each_end(const Rows& graph, i64 v, int warp, int warps, Visit visit) {
  const int lane = lane_id();
  const i64 end = graph.indptr[v + 1];
  for (i64 base = graph.split[v] + warp; base < end; base += 32 * warps) {
    const i64 own = base + static_cast<i64>(lane) * warps;
    const u32 x = own < end ? graph.indices[own] : 0;
    const i64 row = own < end ? graph.indptr[x] : 0;
    const i64 row_end = own < end ? graph.indptr[x + 1] : 0;
    const int active = static_cast<int>(min((end - base + warps - 1) / warps, i64(32)));
    for (int i = 0; i < active; ++i) {
      // Rows ascend, so the vertices beyond v stand at the end; v itself stands before them.
      const i64 row_begin = __shfl_sync(kAll, row, i);
      i64 at = __shfl_sync(kAll, row_end, i) - 32 + lane;
      for (;;) {
        const bool wanted = at >= row_begin && graph.indices[at] > v;
        if (wanted) visit(graph.indices[at]);
        if (!__all_sync(kAll, wanted)) break;
        at -= 32;
      }
    }
  }
}

// Number of wedges per smallest vertex, for the vertices first to last - 1, a warp each: sizes[v - first]. Those of
// more than kLightWedges are written to `heavy`, in no order.
extern "C" __global__ void __launch_bounds__(256, 4)
    measure_wedges(const i64* indptr, const u32* indices, const i64* split, i64 first, i64 last, i64* sizes,
                   u32* heavy, u32* num_heavy) {
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  for (i64 v = first + static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); v < last; v += warps) {
    i64 found = 0;
    for (i64 i = split[v] + lane_id(); i < indptr[v + 1]; i += 32) {
      const u32 x = indices[i];
      const i64 begin = indptr[x];
      const int length = static_cast<int>(indptr[x + 1] - begin);
      found += length - 1 - lower_bound(indices + begin, length, static_cast<u32>(v));
    }
    found = warp_sum(found);
    if (lane_id() == 0) {
      sizes[v - first] = found;
      if (found > kLightWedges) heavy[atomicAdd(num_heavy, 1u)] = static_cast<u32>(v);
    }
  }
}

// Vertices of few wedges: a warp each, ends in a hash table.
extern "C" __global__ void __launch_bounds__(256, 2)
    count_light(const i64* indptr, const u32* indices, const i64* split, i64 first, i64 last, const i64* sizes,
                u32* next, const u32* stop, u64* result) {
  const Rows graph = {indptr, indices, split};
  u32* table = dynamic_shared + warp_in_block() * 2 * kWarpSlots;
  u32* wedges = table + kWarpSlots;
  u64 total = 0;
  for (;;) {
    const i64 from = first + take(next, 32);
    if (from >= last || stop_asked(stop)) break;
    const i64 own = from + lane_id();
    const i64 size = own < last ? sizes[own - first] : 0;
    // A single wedge makes no cycle.
    u32 wanted = __ballot_sync(kAll, size > 1 && size <= kLightWedges);
    while (wanted) {
      const int i = __ffs(wanted) - 1;
      wanted &= wanted - 1;
      const u32 slots = table_slots(static_cast<u32>(__shfl_sync(kAll, size, i)), 2);
      for (u32 slot = lane_id(); slot < slots; slot += 32) {
        table[slot] = kNoVertex;
        wedges[slot] = 0;
      }
      __syncwarp();
      for_each_end(graph, from + i, 0, 1,
                   [&](u32 y) { total += atomicAdd(&wedges[insert(table, slots, y)], 1u); });
      __syncwarp();
    }
  }
  add_result(result, total, 0);
}

// Counters of 16 bits are the halves of words, so that neighbours lie in different banks.
template <bool NARROW>
DEVICE u64 count_windows(const Rows& graph, i64 v, i64 num_vertices, i64 window, u32* near) {
  const i64 size = NARROW ? 2 * window : window;
  u64 total = 0;
  for (i64 low = v + 1; low < num_vertices; low += size) {
    const i64 high = min(low + size, num_vertices);
    for_wedges_between(
        graph, v, static_cast<u32>(low), static_cast<u32>(high),
        [&](i64 arc) {
          const u32 offset = graph.indices[arc] - static_cast<u32>(low);
          if (NARROW && offset >= window) {
            atomicAdd(&near[offset - window], 0x10000u);
          } else {
            atomicAdd(&near[offset], 1u);
          }
        },
        [](i64) {});
    __syncthreads();
    const i64 used = min(high - low, window);
    for (i64 i = threadIdx.x; i < used; i += blockDim.x) {
      const u32 word = near[i];
      if (!word) continue;
      near[i] = 0;
      const u64 first = NARROW ? word & 0xffff : word, second = NARROW ? word >> 16 : 0;
      total += (first ? first * (first - 1) / 2 : 0);
      if (second) total += second * (second - 1) / 2;
    }
    __syncthreads();
  }
  return total;
}

// Vertices of many wedges: a block each, a counter per vertex. Ids are degree ranks, so most ends are small ids
// just beyond v: their counters are in shared memory, the other ones in the block's part of `store`, which holds
// zeros before and after. Vertices of more than `many` wedges go through the other vertices in windows instead; their
// counters have 16 bits where no vertex has a neighbour more (`narrow`).
extern "C" __global__ void __launch_bounds__(1024, 1)
    count_heavy(const i64* indptr, const u32* indices, const i64* split, i64 first, const i64* sizes,
                const u32* heavy, const u32* num_heavy, i64 window, i64 num_vertices, i64 many, i64 narrow, u32* store,
                u32* next, const u32* stop, u64* result) {
  const Rows graph = {indptr, indices, split};
  const int warp = warp_in_block(), warps = blockDim.x >> 5;
  u32* near = dynamic_shared + 4;
  u32* far = store + blockIdx.x * num_vertices;
  u64 total = 0;
  for (i64 i = threadIdx.x; i < window; i += blockDim.x) near[i] = 0;
  for (;;) {
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
    __syncthreads();
    const u32 number = dynamic_shared[0];
    __syncthreads();
    if (number >= *num_heavy) break;
    const u32 v = heavy[number];
    const i64 size = sizes[v - first];
    if (size > many) {
      total += narrow ? count_windows<true>(graph, v, num_vertices, window, near)
                      : count_windows<false>(graph, v, num_vertices, window, near);
      continue;
    }
    for_each_end(graph, v, warp, warps, [&](u32 y) {
      const u32 offset = y - v - 1;
      if (offset < window) {
        total += atomicAdd(&near[offset], 1u);
      } else {
        total += atomicAdd(&far[y], 1u);
      }
    });
    __syncthreads();
    // Clear the way that writes less.
    if (size > window) {
      for (i64 i = threadIdx.x; i < window; i += blockDim.x) near[i] = 0;
    } else {
      for_each_end(graph, v, warp, warps, [&](u32 y) {
        if (y - v - 1 < window) near[y - v - 1] = 0;
      });
    }
    if (v + 1 + window < num_vertices) {
      if (size > num_vertices) {
        for (i64 y = v + 1 + window + threadIdx.x; y < num_vertices; y += blockDim.x) far[y] = 0;
      } else {
        for_each_end(graph, v, warp, warps, [&](u32 y) {
          if (y - v - 1 >= window) far[y] = 0;
        });
      }
    }
    __syncthreads();
  }
  add_result(result, total, 0);
}
