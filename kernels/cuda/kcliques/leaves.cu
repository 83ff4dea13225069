// Count cliques of one size, of every size, or per vertex, by the leaves of pivot trees (Pivoter, WSDM 2020; on GPUs
// KCGPU, ICS 2022).
//
// Below each vertex its out-neighbours become a bitmap table, as in bitmaps.cu; below each arc the ends are held, and the
// candidates are their common out-neighbours. While more than 64 are left they are bitmaps; narrow.cuh goes on.
#include "kcliques/narrow.cuh"
#include "kcliques/parts.cuh"

constexpr int kLightWords = (kLight + 31) / 32;
constexpr int kLightTable = 16 * kLightWords * (kLightWords + 1);
constexpr int kLightPath = kLight + 2;
static_assert(kLight <= kNarrow);
enum Number { kHeld, kPivots, kPivot, kSpan, kEach };
static_assert(kEach + 1 == kLevelNumbers);
static_assert(sizeof(NarrowState) == kStateBytes && kStateBytes % 8 == 0);

struct WideSearch : NarrowSearch {
  const u32* table;
  const u32* neighbours;
  u32* sets;     // u32[levels][2][width]: candidates, and those that will be held
  int* numbers;  // int[levels][kLevelNumbers]
  u32* degrees;  // u32[32 * width]
  int width;

  DEVICE u32* candidates(int level) const { return sets + 2 * level * width; }
  DEVICE u32* untried(int level) const { return candidates(level) + width; }
  DEVICE int& number(int level, int which) const { return numbers[level * kLevelNumbers + which]; }

  DEVICE static int count(const u32* chosen, int words) {
    int size = 0;
    for (int w = lane_id(); w < words; w += 32) size += __popc(chosen[w]);
    return __reduce_add_sync(kAll, size);
  }

  // Count what is below a node at once, if few vertices are missing or few candidates are left; false if it has to be
  // searched.
  DEVICE bool finish(const u32* chosen, int words, int size, int held, int pivots) {
    const int k = leaves.k, missing = k - held;
    if (k && pivots + size < missing) return true;
    if (k && missing == 0) {
      add_leaf(held, 0);
      return true;
    }
    if (k && missing == 1) {
      if (kLimbs) {
        add_singles(held, pivots, size);
        for_each_member(chosen, words, state->queue, [&](int x) { add_number(neighbours[x], 1); });
      } else {
        add_open(held, pivots, 1, 0, 0);
        if (lane_id() == 0) total += size;
      }
      return true;
    }
    if (!kLimbs && k && missing == 2) {
      add_open(held, pivots, 2, size, 0);
      total += count_edges(table, chosen, words, state->queue);
      return true;
    }
    if (size > kNarrow) return false;
    begin(table, chosen, words, neighbours);
    search(held, pivots);
    return true;
  }

  // The neighbours of each candidate among all of a level, into `degrees`.
  DEVICE void count_degrees(const u32* chosen, int words) {
    for (int x = lane_id(); x < 32 * words; x += 32) degrees[x] = 0;
    __syncwarp();
    for_each_member(chosen, words, state->queue, [&](int x) {
      const u32* row = table + row_start(x);
      u32 own = 0;
      for (int w = 0; w < row_words(x); ++w) {
        u32 both = chosen[w] & row[w];
        own += __popc(both);
        while (both) {
          atomicAdd(&degrees[32 * w + __ffs(both) - 1], 1u);
          both &= both - 1;
        }
      }
      if (own) atomicAdd(&degrees[x], own);
    });
    __syncwarp();
  }

  // Begin a level of more than 64 candidates; true if they are to be tried.
  DEVICE bool enter_wide(int level, int size) {
    const int lane = lane_id(), words = number(level, kSpan), held = number(level, kHeld);
    int pivots = number(level, kPivots);
    u32* chosen = candidates(level);
    u32* rest = untried(level);
    const u64 found = count_edges(table, chosen, words, state->queue);
    const u64 edges = __reduce_add_sync(kAll, static_cast<u32>(found));
    if (level < kEachLevels && 4 * edges < static_cast<u64>(size) * (size - 1)) {
      // Few are adjacent: a pivot would leave most branches. Each is held in turn, with those before it.
      if (!kLimbs && leaves.k && leaves.k - held == 3) {
        add_open(held, pivots, 3, size, edges);
        total += count_triangles(table, chosen, words, state->queue);
        return false;
      }
      __syncwarp();
      for (int w = lane; w < words; w += 32) rest[w] = chosen[w];
      if (lane == 0) {
        number(level, kPivot) = -1;
        number(level, kEach) = 1;
      }
      __syncwarp();
      return true;
    }
    count_degrees(chosen, words);
    u32 best = 0, at = 0;
    for (int w = 0; w < words; ++w) {
      const u32 bits = chosen[w], near = __ldcg(&degrees[32 * w + lane]);
      const bool in = bits >> lane & 1, universal = in && near == static_cast<u32>(size - 1);
      const u32 mask = __ballot_sync(kAll, universal);
      if (kLimbs && universal) pivot_path[pivots + __popc(mask & lanes_before())] = neighbours[32 * w + lane];
      pivots += __popc(mask);
      if (lane == 0) rest[w] = mask;
      if (in && !universal && near + 1 > best) {
        best = near + 1;
        at = 32 * w + lane;
      }
    }
    const u32 most = __reduce_max_sync(kAll, best);
    __syncwarp();
    if (!most) {
      add_leaf(held, pivots);
      return false;
    }
    const int pivot = static_cast<int>(__reduce_max_sync(kAll, best == most ? at : 0));
    for (int w = lane; w < words; w += 32) chosen[w] &= ~rest[w];
    __syncwarp();
    near_to(pivot, chosen, words, rest);
    for (int w = lane; w < words; w += 32) {
      const u32 itself = w == pivot >> 5 ? 1u << (pivot & 31) : 0;
      rest[w] = chosen[w] & ~rest[w] & ~itself;
    }
    if (lane == 0) {
      number(level, kPivots) = pivots;
      number(level, kPivot) = pivot;
      number(level, kEach) = 0;
    }
    __syncwarp();
    return true;
  }

  // Write which of the chosen ones are adjacent to out-neighbour i.
  DEVICE void near_to(int i, const u32* chosen, int words, u32* out) const {
    const u32* row = table + row_start(i);
    const int before = min(i >> 5, words), lane = lane_id();  // words of vertices before i only
    for (int w = lane; w < before; w += 32) out[w] = chosen[w] & row[w];
    for (int w = before; w < words; ++w) {
      const int x = 32 * w + lane;
      bool near = chosen[w] >> lane & 1;
      if (near) near = x < i ? row[w] >> lane & 1 : x > i && table[row_start(x) + (i >> 5)] >> (i & 31) & 1;
      const u32 mask = __ballot_sync(kAll, near);
      if (lane == 0) out[w] = mask;
    }
    __syncwarp();
  }

  // The last one that will be held of a level; -1 where there is none.
  DEVICE int last_untried(int level) const {
    for (int w = number(level, kSpan) - 1; w >= 0; --w) {
      const u32 bits = untried(level)[w];
      if (bits) return 32 * w + 31 - __clz(static_cast<int>(bits));
    }
    return -1;
  }

  // Search below the arc to out-neighbour i of `vertex`. With WIDE, there may be more than 64 candidates. `finish` and
  // `enter_wide` are called in one place only, since every call is inlined.
  template <bool WIDE>
  DEVICE void search_arc(u32 vertex, int i) {
    const u32* chosen = table + row_start(i);
    const int lane = lane_id();
    int words = row_words(i), size = count(chosen, words), held = 2, pivots = 0;
    if (!size) return;
    if (kLimbs) {
      __syncwarp();
      if (lane == 0) {
        held_path[0] = vertex;
        held_path[1] = neighbours[i];
      }
      __syncwarp();
    }
    for (int level = -1;;) {
      const bool finished = finish(chosen, words, size, held, pivots);
      if constexpr (!WIDE) return;
      if (!finished) {
        if (level < 0) begin_wide(chosen, words);
        if (enter_wide(level + 1, size)) ++level;
      }
      __syncwarp();
      int pivot = -1, next = -1;
      for (; level >= 0; --level) {
        if (stop_asked(stop)) return;
        pivot = number(level, kPivot);
        next = pivot >= 0 ? pivot : last_untried(level);
        if (next >= 0) break;
      }
      if (level < 0) return;
      held = number(level, kHeld);
      pivots = number(level, kPivots);
      words = number(level, kEach) ? row_words(next) : number(level, kSpan);
      __syncwarp();
      near_to(next, candidates(level), words, candidates(level + 1));
      if (lane == 0) {
        candidates(level)[next >> 5] &= ~(1u << (next & 31));
        if (pivot < 0) untried(level)[next >> 5] &= ~(1u << (next & 31));
        number(level, kPivot) = -1;
        number(level + 1, kHeld) = held + (pivot < 0);
        number(level + 1, kPivots) = pivots + (pivot >= 0);
        number(level + 1, kSpan) = words;
        if (kLimbs) (pivot < 0 ? held_path[held] : pivot_path[pivots]) = neighbours[next];
      }
      __syncwarp();
      chosen = candidates(level + 1);
      size = count(chosen, words);
      (pivot < 0 ? held : pivots) += 1;
    }
  }

  // Make the candidates of an arc the candidates of the first level.
  DEVICE void begin_wide(const u32* chosen, int words) {
    __syncwarp();
    for (int w = lane_id(); w < words; w += 32) candidates(0)[w] = chosen[w];
    if (lane_id() == 0) {
      number(0, kHeld) = 2;
      number(0, kPivots) = 0;
      number(0, kSpan) = words;
    }
    __syncwarp();
  }
};

// Make a block's cells of leaves zero.
DEVICE void clear_cells(u64* cells) {
  for (int c = threadIdx.x; c < kSharedLeaves; c += blockDim.x) cells[c] = 0;
  __syncthreads();
}

// Add what the lanes and the block's cells have to the result.
DEVICE void flush(const WideSearch& search, u64* singles) {
  WideSum{search.total}.add_lanes_to(singles);
  __syncthreads();
  for (int c = threadIdx.x; c < kSharedLeaves; c += blockDim.x) {
    const u64 number = search.leaves.shared_cells[c];
    if (number) atomicAdd(&search.leaves.cells[c / kSharedPivots * search.leaves.row + c % kSharedPivots], number);
  }
}

// Whole vertices of few out-neighbours, a warp each.
extern "C" __global__ void __launch_bounds__(256, 3)
    count_light(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices,
                i64 first, i64 last, i64 k, u64* cells, i64 row, u64* counts, const u64* weights, u32* next,
                const u32* stop, u64* singles) {
  const int lane = lane_id();
  const Rows graph = {indptr, indices, split, places};
  const VertexRange range = vertices_of_slots(indptr, num_vertices, first, last);
  u64* shared_cells = reinterpret_cast<u64*>(dynamic_shared);
  NarrowState* states = reinterpret_cast<NarrowState*>(shared_cells + kSharedLeaves);
  u32* table = reinterpret_cast<u32*>(states + (blockDim.x >> 5)) + warp_in_block() * (kLightTable + 2 * kLightPath);
  WideSearch search;
  search.leaves = {static_cast<int>(k), shared_cells, cells, row, counts, num_vertices, weights};
  search.state = states + warp_in_block();
  search.held_path = table + kLightTable;
  search.pivot_path = search.held_path + kLightPath;
  search.stop = stop;
  search.table = table;
  search.total = 0;
  search.steps = 0;
  clear_cells(shared_cells);
  const int least = max(static_cast<int>(k) - 1, 2);
  for (;;) {
    const i64 from = range.begin + take(next, 8);
    if (from >= range.end || stop_asked(stop)) break;
    const i64 to = min(from + 8, range.end);
    for (i64 v = from; v < to; ++v) {
      const i64 a = indptr[v], z = split[v];
      const int degree = static_cast<int>(z - a);
      const i64 begin = max(a, first), end = min(z, last);
      if (degree < least || degree > kLight || begin >= end) continue;
      for (u32 w = lane; w < row_start(degree); w += 32) table[w] = 0;
      __syncwarp();
      const i64 place = place_of_list(places, a, degree);
      for (int i = 1; i < end - a; ++i) build_row(graph, place, i, table);
      __syncwarp();
      search.neighbours = indices + place;
      for (int i = static_cast<int>(begin - a); i < end - a; ++i) search.search_arc<false>(static_cast<u32>(v), i);
      __syncwarp();
    }
  }
  flush(search, singles);
}

// Vertices of many out-neighbours, a block for each part of one; `tasks` as find_heavy lists them. store:
// u32[blocks][store_words], of which each warp has own_words, and the table of the block the others.
extern "C" __global__ void __launch_bounds__(512, 2)
    count_heavy(const i64* indptr, const u32* indices, const i64* split, const i64* places, i64 num_vertices,
                const u32* tasks, const u32* num_tasks, i64 first, i64 last, i64 k, i64 shared_words, u32* store,
                i64 store_words, i64 own_words, i64 width, i64 levels, u64* cells, i64 row, u64* counts,
                const u64* weights, u32* next, const u32* stop, u64* singles) {
  const Rows graph = {indptr, indices, split, places};
  const int warps = blockDim.x >> 5;
  u64* shared_cells = reinterpret_cast<u64*>(dynamic_shared + 4);
  NarrowState* states = reinterpret_cast<NarrowState*>(shared_cells + kSharedLeaves);
  u32* shared_table = reinterpret_cast<u32*>(states + warps);
  u32* block_store = store + blockIdx.x * store_words;
  u32* own = block_store + warp_in_block() * own_words;
  WideSearch search;
  search.leaves = {static_cast<int>(k), shared_cells, cells, row, counts, num_vertices, weights};
  search.state = states + warp_in_block();
  search.stop = stop;
  search.total = 0;
  search.steps = 0;
  search.width = static_cast<int>(width);
  search.sets = own;
  search.degrees = own + 2 * levels * width;
  search.numbers = reinterpret_cast<int*>(search.degrees + 32 * width);
  search.held_path = search.degrees + 32 * width + levels * kLevelNumbers;
  search.pivot_path = search.held_path + 32 * width + 2;
  clear_cells(shared_cells);
  for (;;) {
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
    __syncthreads();
    const u32 task = dynamic_shared[0];
    __syncthreads();
    if (task >= *num_tasks) break;
    const i64 v = tasks[2 * task];
    const i64 a = indptr[v];
    const int degree = static_cast<int>(split[v] - a);
    const int from = static_cast<int>(max(a, first) - a), to = static_cast<int>(min(split[v], last) - a);
    const i64 place = place_of_list(places, a, degree);
    const int part = tasks[2 * task + 1], rows = rows_of_part(degree, kWholeTo, kPartWork, kLeastRows, kRowsPerPart);
    const int parts = (degree + rows - 1) / rows;
    u32* table = row_start(degree) <= shared_words ? shared_table : block_store + warps * own_words;
    for (u32 w = threadIdx.x; w < row_start(degree); w += blockDim.x) table[w] = 0;
    if (threadIdx.x == 0) dynamic_shared[1] = 0;
    __syncthreads();
    for (int i = 1 + warp_in_block(); i < to; i += warps) build_row(graph, place, i, table);
    __syncthreads();
    search.table = table;
    search.neighbours = indices + place;
    for (;;) {
      const int i = to - 1 - part - parts * static_cast<int>(take(dynamic_shared + 1, 1));
      if (i < from || stop_asked(stop)) break;
      search.search_arc<true>(static_cast<u32>(v), i);
    }
  }
  flush(search, singles);
}
