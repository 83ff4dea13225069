// Count triangles where all lists of smaller neighbours are short, a warp for every vertex: those of the vertex are a hash
// table in shared memory, and the entries of their own lists are dealt to the lanes one after another.
#include "hash_table.cuh"
#include "row_bitmap.cuh"

constexpr int kAhead = 4;  // windows of 32 entries that are read before one is looked up

// Non-empty lists of up to 32 vertices, one after the other; u32 starts[32], for a warp.
struct Lists {
  u32* starts;  // where list i begins, less the entries of the lists before it
  u32 before;   // the entries of the lists before this lane's
  u32 total;
  bool some;  // whether this lane's list has any

  DEVICE void set(u32 from, u32 length) {
    const int lane = lane_id();
    u32 upto = length;
    for (int distance = 1; distance < 32; distance <<= 1) {
      const u32 other = __shfl_up_sync(kAll, upto, distance);
      if (lane >= distance) upto += other;
    }
    before = upto - length;
    some = length > 0;
    total = __shfl_sync(kAll, upto, 31);
    const u32 others = __ballot_sync(kAll, some);
    __syncwarp();
    if (some) starts[__popc(others & lanes_before())] = from - before;
    __syncwarp();
  }
};

// Count the entries of the lists that are in the table.
DEVICE u32 common_entries(const u32* indices, const Lists& lists, const u32* table, u32 slots) {
  const int lane = lane_id();
  u32 found = 0;
  int passed = -1;  // lists that begin before the window, less one
  for (u32 window = 0; window < lists.total; window += 32 * kAhead) {
    u32 entries[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const u32 at = window + 32 * i, place = lists.before - at;
      const u32 begins = __reduce_or_sync(kAll, lists.some && place < 32 ? 1u << place : 0u);
      const int list = passed + __popc(begins & (2u * (1u << lane) - 1));
      entries[i] = at + lane < lists.total ? indices[lists.starts[list] + at + lane] : kNoVertex;
      passed += __popc(begins);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) found += entries[i] != kNoVertex && find(table, slots, entries[i]) != slots;
  }
  return found;
}

// The triangles of the arcs first to last - 1, which lead from the largest vertex to the middle one. A warp has
// `most_slots` slots; arcs are fewer than 2^32.
extern "C" __global__ void __launch_bounds__(256, 6)
    count_triangles(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 first, i64 last,
                    i64 most_slots, LaunchState* state, const u32* stop, u64* result) {
  const int lane = lane_id();
  u32* table = dynamic_shared + 4 + warp_in_block() * (most_slots + 32);
  Lists lists = {table + most_slots, 0, 0, false};
  const i64 step = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  u64 total = 0;
  // Neighbours in the order of degrees are work of different blocks.
  i64 v = static_cast<i64>(warp_in_block()) * gridDim.x + blockIdx.x;
  i64 a = v < num_vertices ? indptr[v] : 0, z = v < num_vertices ? split[v] : 0;
  u32 stopped = 0;
  while (v < num_vertices && !stopped) {
    // What the next vertex needs is read before the work of this one.
    const i64 next = v + step, next_a = next < num_vertices ? indptr[next] : 0;
    const i64 next_z = next < num_vertices ? split[next] : 0;
    const u32 asked = load_volatile(stop);
    const i64 begin = max(a, first), end = min(z, last);
    const int degree = static_cast<int>(z - a);
    if (degree > 1 && begin < end) {
      const u32 slots = table_slots(degree, kTableShare);
      for (u32 slot = lane; slot < slots; slot += 32) table[slot] = kNoVertex;
      __syncwarp();
      for (i64 arc = a + lane; arc < z; arc += 32) insert(table, slots, indices[arc]);
      for (i64 base = begin; base < end; base += 32) {
        const bool in = base + lane < end;
        const u32 u = in ? indices[base + lane] : 0;
        const i64 from = in ? indptr[u] : 0;
        lists.set(static_cast<u32>(from), in ? static_cast<u32>(split[u] - from) : 0);
        total += common_entries(indices, lists, table, slots);
      }
      __syncwarp();
    }
    stopped = __shfl_sync(kAll, asked, 0);
    v = next;
    a = next_a;
    z = next_z;
  }
  finish(state, total, result);
}
