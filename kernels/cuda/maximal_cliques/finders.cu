// Find maximal cliques below the vertices of a range, a warp for each: see tasks.cuh, narrow.cuh,
// search.cuh and donations.cuh. (G-thinkerCG, MCE-GPU; Eppstein, Loeffler and Strash for the order.)
#include "maximal_cliques/donations.cuh"

// Where the arrays of a warp begin, in words of 32 bits.
struct Layout {
  i64 rows, path, task, order, ids, adjacent, wide_rows, wide_sets, wide_numbers, saved;
};

// Vertices of the range whose degrees are in the range, too.
struct Roots {
  i64 first, last, least_degree, most_degree;
  u32 at_once;
};

// Take the next root of `state`, or else the donation of another warp. False if this launch has neither left.
DEVICE bool find_work(Finder& finder, const Roots& roots) {
  State* state = finder.state;
  const OrderedGraph& graph = finder.graph;
  while (!(state->phase & kWaits)) {
    const u32 pending = state->pending;
    if (pending) {
      const u32 v = static_cast<u32>(state->roots + __ffs(pending) - 1);
      const int count = static_cast<int>(graph.later_ptr[v + 1] - graph.later_ptr[v]);
      u32* task = finder.store.task;
      for (int w = lane_id(); 32 * w < count; w += 32) {
        task[w] = task[2 * kWords + w] = 0;
        task[kWords + w] = count - 32 * w < 32 ? (1u << (count & 31)) - 1 : kAll;
      }
      __syncwarp();
      if (lane_id() == 0) {
        state->pending = pending & (pending - 1);
        state->root = v;
        state->phase |= kBegins;
      }
      __syncwarp();
      return true;
    }
    if (is_full(finder.found) || stop_asked(finder.stop)) return false;
    const i64 base = roots.first + take(&finder.control->next_root, roots.at_once), v = base + lane_id();
    bool wanted = lane_id() < roots.at_once && v < roots.last;
    if (wanted) {
      const i64 later = graph.later_ptr[v + 1] - graph.later_ptr[v], degree = graph.indptr[v + 1] - graph.indptr[v];
      wanted = later && later + 1 >= finder.found.min_size && degree > roots.least_degree && degree <= roots.most_degree;
    }
    const u32 mask = __ballot_sync(kAll, wanted);
    if (lane_id() == 0) {
      state->roots = base;
      state->pending = mask;
      if (base >= roots.last) {
        state->phase |= kWaits;
        atomicSub(&finder.control->outstanding, 1u);
      }
    }
    __syncwarp();
  }
  if (!finder.take_donation()) return false;
  if (lane_id() == 0) state->phase |= kGiven;
  __syncwarp();
  return true;
}

// Search; true once the root or task has no more cliques.
DEVICE bool search(Finder& finder) {
  State* state = finder.state;
  Node& node = finder.node;
  WideNode& wide = finder.wide;
  for (u32 steps = 1;; ++steps) {
    if (node.fresh) {
      node.fresh = false;
      if (kWideLevels && node.of_wide && finder.give_node()) continue;
      if (!finder.enter(node)) return false;
    } else if (state->depth >= 0) {
      if (!finder.step(node)) return false;
    } else if (kWideLevels && wide.fresh) {
      wide.fresh = false;
      if (!finder.enter_wide(wide)) {
        if (wide.member >= 0) finder.move_tried(state->wide_level, wide.member, false);
        if (wide.member < 0 && lane_id() == 0) state->phase |= kBegins;
        return false;
      }
    } else if (kWideLevels && state->wide_level >= 0) {
      if (!finder.step_wide(wide, node)) return false;
    } else {
      return true;
    }
    if (steps % kStepsBetweenPauses == 0 && finder.pause()) return false;
  }
}

extern "C" __global__ void __launch_bounds__(256, kBlocks)
    find_cliques(const i64* indptr, const u32* indices, const u32* rank, const i64* later_ptr, const u32* later,
                 i64 first, i64 last, i64 at_once, i64 least_degree, i64 most_degree, i64 min_size, u32* memory,
                 const i64* layout, i64 words_per_warp, u32* ring, i64 ring_slots, DonationControl* control,
                 i64 fresh, const u32* stop,
                 u64* sizes, u64* vertices, i64 num_vertices, u64* listing, i64 capacity, i64* offsets, u32* members,
                 u64* result) {
  const int lane = lane_id();
  u64* shared_sizes = reinterpret_cast<u64*>(dynamic_shared);
  State* state = reinterpret_cast<State*>(shared_sizes + kSharedSizes) + warp_in_block();
  for (int s = threadIdx.x; s < kSharedSizes; s += blockDim.x) shared_sizes[s] = 0;
  const i64 warp = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
  u32* own = memory + warp * words_per_warp;
  const Layout& at = *reinterpret_cast<const Layout*>(layout);
  Finder finder;
  finder.state = state;
  finder.store = {reinterpret_cast<u64*>(own + at.rows), own + at.path,      own + at.task,
                  own + at.order,                        own + at.ids,       own + at.adjacent,
                  own + at.wide_rows,                    own + at.wide_sets, reinterpret_cast<int*>(own + at.wide_numbers)};
  finder.found = {min_size, shared_sizes, sizes, vertices, num_vertices, listing, capacity, offsets, members};
  finder.graph = {indptr, indices, rank, later_ptr, later};
  finder.estimate = 0;
  finder.control = control;
  finder.ring = ring;
  finder.ring_slots = static_cast<u32>(ring_slots);
  finder.stop = stop;
  finder.node.fresh = finder.wide.fresh = false;
  finder.words = 0;
  finder.since = finder.clock_of_warp();
  finder.patience = kPatience;
  const Roots roots = {first, last, least_degree, most_degree, static_cast<u32>(at_once)};
  u32* saved = own + at.saved;
  constexpr int state_words = sizeof(State) / 4;
  if (fresh) {
    if (lane == 0) {
      state->phase = 0;
      state->pending = 0;
      atomicAdd(&control->outstanding, 1u);
    }
  } else {
    for (int w = lane; w < state_words; w += 32) reinterpret_cast<u32*>(state)[w] = saved[w];
  }
  __syncthreads();
  if (!fresh) finder.words = (state->wide_size + 31) >> 5;
  for (;;) {
    if (!(state->phase & kSearches)) {
      if (!find_work(finder, roots)) break;
      __syncwarp();
      if (lane == 0) state->phase |= kSearches;
      __syncwarp();
    }
    // Roots, donations and tasks that begin again share one call, since every call is inlined.
    if (state->phase & kBegins) {
      __syncwarp();
      if (lane == 0) state->phase &= ~kBegins;
      __syncwarp();
      finder.begin();
    }
    if (!search(finder)) break;
    __syncwarp();
    if (kMode == kCountVertices && state->total)
      note_path(finder.found, finder.store.path, 0, state->base, state->total, state->peak);
    __syncwarp();
    if (lane == 0) {
      if (state->phase & kGiven) atomicSub(&control->outstanding, 1u);
      state->phase &= kWaits | kHoldsSlot;
    }
    __syncwarp();
  }
  __syncwarp();
  if (kMode == kListCliques)
    for (int w = lane; w < state_words; w += 32) saved[w] = reinterpret_cast<u32*>(state)[w];
  add_result(result, 0, finder.estimate);
  __syncthreads();
  for (int s = threadIdx.x; s < kSharedSizes; s += blockDim.x)
    if (shared_sizes[s]) atomicAdd(&sizes[s], shared_sizes[s]);
}
