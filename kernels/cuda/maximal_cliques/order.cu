// The degeneracy order: peel vertices of the least degree, round by round, and cut the adjacency to later neighbours.
#include "common.cuh"

struct PeelQueue {
  u32 arrived, generation;  // of the barrier
  u32 queued;               // vertices that were ever queued
  u32 end;                  // the same, as of the last barrier
};
static_assert(sizeof(PeelQueue) == 4 * kPeelNextLevel);  // older compilers of NVIDIA know no offset of a member

struct PeelControl : PeelQueue {
  u32 next_level;  // least degree that was seen above the level
  u32 level;       // the same, as of the last barrier
  u32 stopped;
  u32 unused;
};
static_assert(sizeof(PeelControl) == 4 * kPeelControlWords);

// Wait for all blocks, which are on the device at once. What the last one finds is the same for all then.
DEVICE void wait_for_all(PeelControl* control, const u32* stop) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const u32 generation = load_volatile(&control->generation);
    __threadfence();
    if (atomicAdd(&control->arrived, 1u) == gridDim.x - 1) {
      control->arrived = 0;
      control->end = load_volatile(&control->queued);
      control->level = load_volatile(&control->next_level);
      control->next_level = kNoLevel;
      control->stopped = load_volatile(stop);
      __threadfence();
      atomicAdd(&control->generation, 1u);
    } else {
      while (load_volatile(&control->generation) == generation) __nanosleep(20);
    }
    __threadfence();
  }
  __syncthreads();
}

// Append the vertices of some lanes to the queue, with their round.
DEVICE void enqueue(PeelControl* control, u32* queue, u32* round_of, u32 v, bool wanted, u32 round) {
  const u32 mask = __ballot_sync(kAll, wanted);
  if (!mask) return;
  const u32 at = take(&control->queued, __popc(mask)) + __popc(mask & lanes_before());
  if (wanted) {
    queue[at] = v;
    round_of[v] = round;
  }
}

// Write the round in which every vertex is peeled. degree: u32[n]; queue: u32[n], workspace.
extern "C" __global__ void __launch_bounds__(1024, 1)
    peel(const i64* indptr, const u32* indices, i64 n, u32* degree, u32* queue, u32* round_of, PeelControl* control,
         const u32* stop) {
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  const i64 thread = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
  const i64 warp = thread >> 5, warps = threads >> 5;
  const i64 rounded = (n + 31) & ~31ll;  // whole warps
  for (i64 v = thread; v < n; v += threads) degree[v] = static_cast<u32>(indptr[v + 1] - indptr[v]);
  wait_for_all(control, stop);
  i64 above = -1;  // vertices of larger degrees are left
  u32 begin = 0, round = 0;
  for (;;) {
    u32 least = kNoLevel;
    for (i64 v = thread; v < n; v += threads) {
      const u32 own = __ldcg(&degree[v]);
      if (static_cast<i64>(own) > above) least = min(least, own);
    }
    least = __reduce_min_sync(kAll, least);
    if (lane_id() == 0 && least != kNoLevel) atomicMin(&control->next_level, least);
    wait_for_all(control, stop);
    const u32 level = load_volatile(&control->level);
    if (level == kNoLevel || load_volatile(&control->stopped)) return;
    above = level;
    for (i64 v = thread; v < rounded; v += threads)
      enqueue(control, queue, round_of, static_cast<u32>(v), v < n && __ldcg(&degree[v]) == level, round);
    wait_for_all(control, stop);
    for (u32 end = load_volatile(&control->end); begin < end; end = load_volatile(&control->end)) {
      for (i64 i = begin + warp; i < end; i += warps) {
        const u32 v = __ldcg(&queue[i]);
        const i64 last = indptr[v + 1];
        for (i64 base = indptr[v]; base < last; base += 32) {
          const u32 u = base + lane_id() < last ? indices[base + lane_id()] : kNoVertex;
          bool reached = false;
          if (u != kNoVertex && load_volatile(&degree[u]) > level) {
            const u32 before = atomicSub(&degree[u], 1u);
            reached = before == level + 1;
            if (before <= level) atomicAdd(&degree[u], 1u);  // others were faster
          }
          enqueue(control, queue, round_of, u, reached, round + 1);
        }
      }
      begin = end;
      ++round;
      wait_for_all(control, stop);
      if (load_volatile(&control->stopped)) return;
    }
  }
}

// What the order sorts by: the round, and descending ids within a round.
extern "C" __global__ void __launch_bounds__(256) write_keys(const u32* round_of, i64 n, u64* keys) {
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 v = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; v < n; v += step)
    keys[v] = static_cast<u64>(round_of[v]) << 32 | static_cast<u32>(n - 1 - v);
}

extern "C" __global__ void __launch_bounds__(256) write_ranks(const u64* keys, i64 n, u32* rank) {
  const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    rank[n - 1 - static_cast<u32>(keys[i])] = static_cast<u32>(i);
}

// Count the later neighbours of every vertex into ends[v + 1]. largest: i64[2], their largest number, and the most
// words that the rows of a vertex's earlier neighbours take, of those with more than `narrow` later neighbours.
extern "C" __global__ void __launch_bounds__(256)
    count_later(const i64* indptr, const u32* indices, const u32* rank, i64 n, i64 narrow, i64* ends, u64* largest) {
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  u64 most = 0, most_words = 0;
  for (i64 v = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); v < n; v += warps) {
    const u32 own = rank[v];
    const i64 first = indptr[v], last = indptr[v + 1];
    u32 found = 0;
    for (i64 j = first + lane_id(); j < last; j += 32) found += rank[indices[j]] > own;
    found = __reduce_add_sync(kAll, found);
    if (lane_id() == 0) ends[v + 1] = found;
    most = max(most, static_cast<u64>(found));
    if (found > narrow)
      most_words = max(most_words, static_cast<u64>(last - first - found) * ((found + 63) >> 6));
  }
  if (lane_id() == 0) {
    atomicMax(&largest[0], most);
    atomicMax(&largest[1], most_words);
  }
}

// Write the later neighbours of every vertex, ascending by id.
extern "C" __global__ void __launch_bounds__(256)
    write_later(const i64* indptr, const u32* indices, const u32* rank, i64 n, const i64* later_ptr, u32* later) {
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  for (i64 v = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); v < n; v += warps) {
    const u32 own = rank[v];
    const i64 last = indptr[v + 1];
    i64 at = later_ptr[v];
    for (i64 base = indptr[v]; base < last; base += 32) {
      const u32 u = base + lane_id() < last ? indices[base + lane_id()] : kNoVertex;
      const bool kept = u != kNoVertex && rank[u] > own;
      const u32 mask = __ballot_sync(kAll, kept);
      if (kept) later[at + __popc(mask & lanes_before())] = u;
      at += __popc(mask);
    }
  }
}
