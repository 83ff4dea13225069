// Count k-cliques, k >= 4: below each vertex its out-neighbours become a bitmap table, so that set operations on
// local numbers are AND and population count (the idea of GLUMIN, PPoPP 2025, and KCGPU, ICS 2022).
//
// Warps walk the first levels of the search together; the last two or three vertices are found by lanes on their own.
// Below arcs whose candidates are adjacent mostly, larger cliques are counted in root subgraphs; see roots.cuh.
#include "kcliques/parts.cuh"
#include "kcliques/roots.cuh"

// constexpr int kLight (out-degree up to which a vertex is one warp's work), kWholeTo, kPartWork, kLeastRows, kRowsPerPart
// (parts of larger vertices, one block's work each; see rows_of_part), kAdjacent, kOf (the least share of adjacent pairs in
// a root subgraph)

constexpr int kWalked = kCliqueSize > 5 ? kCliqueSize - 5 : 0;  // levels whose candidates are stored per warp
constexpr int kLightWords = (kLight + 31) / 32;

// A warp's workspace.
struct Workspace {
  u32* queue;   // u32[kTableQueue]
  u32* levels;  // u32[kWalked][width]
  int width;
  const u32* stop;
};

// Write those of the chosen candidates that are before x and adjacent to it; returns their number.
DEVICE int choose(const u32* table, int x, const u32* chosen, u32* next) {
  const u32* row = table + row_start(x);
  const int words = row_words(x);
  u32 present = 0;
  for (int z = lane_id(); z < words; z += 32) {
    const u32 both = chosen[z] & row[z];
    next[z] = both;
    present += __popc(both);
  }
  __syncwarp();
  return static_cast<int>(__reduce_add_sync(kAll, present));
}

// Count the cliques of NEED vertices, at most four, among the chosen candidates; each lane returns its part.
// IN_GLOBAL: the table is in global memory, since it has no room in shared memory.
template <int NEED, bool IN_GLOBAL>
DEVICE u64 count_last(const u32* table, const u32* chosen, int words, const Workspace& workspace) {
  u64 total = 0;
  if constexpr (NEED == 2) {
    total = IN_GLOBAL ? count_edges_by_sectors(table, chosen, words, workspace.queue)
                      : count_edges(table, chosen, words, workspace.queue);
  } else if constexpr (NEED == 3) {
    total = count_triangles(table, chosen, words, workspace.queue);
  } else {
    for (int w = 0; w < words; ++w) {
      u32 bits = chosen[w];
      while (bits) {
        const int x = 32 * w + __ffs(bits) - 1;
        bits &= bits - 1;
        if (choose(table, x, chosen, workspace.levels) >= 3)
          total += count_triangles(table, workspace.levels, row_words(x), workspace.queue);
        __syncwarp();
        // Deep subtrees are long; the shallow ones are not worth the look.
        if (kCliqueSize == 6 && stop_asked(workspace.stop)) return total;
      }
    }
  }
  return total;
}

// Count the cliques of kCliqueSize - 2 vertices among the chosen candidates; each lane returns its part. The levels
// above the last four are one loop, since functions that are inlined in each other took long to compile.
template <bool IN_GLOBAL>
DEVICE u64 count_below(const u32* table, const u32* chosen, int words, const Workspace& workspace) {
  constexpr int top = kCliqueSize - 2;
  if constexpr (top <= 4) {
    return count_last<top, IN_GLOBAL>(table, chosen, words, workspace);
  } else {
    int path[kSavedLevels];  // the candidate that was chosen on each level above
    const u32* own = chosen;
    u64 total = 0;
    int need = top, span = words, w = 0;
    u32 bits = words ? own[0] : 0;
    for (;;) {
      while (!bits && ++w < span) bits = own[w];
      if (!bits) {
        if (need == top) return total;
        ++need;
        const int x = path[need - 6];
        own = need == top ? chosen : workspace.levels + (need - 3) * workspace.width;
        span = need == top ? words : row_words(path[need - 5]);
        w = x >> 5;
        bits = own[w] & ~((2u << (x & 31)) - 1);
      } else {
        const int x = 32 * w + __ffs(bits) - 1;
        bits &= bits - 1;
        u32* next = workspace.levels + (need - 4) * workspace.width;
        const int size = choose(table, x, own, next);
        if (size >= need - 1 && need > 5) {
          path[need - 6] = x;
          --need;
          own = next;
          span = row_words(x);
          w = 0;
          bits = own[0];
          continue;
        }
        if (size >= 4 && need == 5) total += count_last<4, IN_GLOBAL>(table, next, row_words(x), workspace);
      }
      __syncwarp();
      if (stop_asked(workspace.stop)) return total;
    }
  }
}

// Whole vertices of few out-neighbours, a warp each.
extern "C" __global__ void __launch_bounds__(256, 4)
    count_light(const i64* indptr, const u32* indices, const i64* split, const i64* places, u32* table_words,
                const i64* table_starts, i64 first_table, i64 num_vertices, i64 first, i64 last, u32* next,
                const u32* stop, u64* result) {
  constexpr int most_words = 16 * kLightWords * (kLightWords + 1);
  const int lane = lane_id();
  const Rows graph = {indptr, indices, split, places};
  const Tables tables = {table_words, table_starts, first_table};
  const VertexRange range = vertices_of_slots(indptr, num_vertices, first, last);
  u32* table = dynamic_shared + warp_in_block() * (most_words + kTableQueue + kWalked * kLightWords);
  const Workspace workspace = {table + most_words, table + most_words + kTableQueue, kLightWords, stop};
  u64 total = 0;
  for (;;) {
    const i64 from = range.begin + take(next, 8);
    if (from >= range.end || stop_asked(stop)) break;
    const i64 to = min(from + 8, range.end);
    for (i64 v = from; v < to; ++v) {
      const i64 a = indptr[v], z = split[v];
      const int degree = static_cast<int>(z - a);
      const i64 begin = max(a, first), end = min(z, last);
      if (degree < kCliqueSize - 1 || degree > kLight || begin >= end) continue;
      if (table_words) {
        const u32* made = tables.of(v);
        for (u32 w = lane; w < row_start(degree); w += 32) table[w] = made[w];
      } else {
        for (u32 w = lane; w < row_start(degree); w += 32) table[w] = 0;
        __syncwarp();
        // The rows up to the last one wanted.
        const i64 place = place_of_list(places, a, degree);
        for (int i = 1; i < end - a; ++i) build_row(graph, place, i, table);
      }
      __syncwarp();
      u64 found = 0;
      for (int i = static_cast<int>(begin - a); i < end - a; ++i)
        found += count_below<false>(table, table + row_start(i), row_words(i), workspace);
      total += found;
      __syncwarp();
    }
  }
  WideSum{total}.add_lanes_to(result);
}

static_assert(sizeof(BlockCounters) == 4 * kBlockCounterWords);

// The arcs of a part that have root subgraphs: those of words from the front, those of bitmaps from the end.
DEVICE u16* root_list() { return reinterpret_cast<u16*>(dynamic_shared + kBlockCounterWords); }
DEVICE BlockCounters* block_counters() { return reinterpret_cast<BlockCounters*>(dynamic_shared); }

// Put arc i of a vertex on the list, by a warp, if its root subgraph pays.
DEVICE bool has_root(const u32* table, int i, u32* queue) {
  const u32* row = table + row_start(i);
  u32 present = 0;
  for (int w = lane_id(); w < row_words(i); w += 32) present += __popc(row[w]);
  const int size = static_cast<int>(__reduce_add_sync(kAll, present));
  if (size < kCliqueSize - 2 || size > kMostRooted) return false;
  const u64 found = count_edges(table, row, row_words(i), queue);
  const u32 edges = __reduce_add_sync(kAll, static_cast<u32>(found));
  if (kOf * static_cast<u64>(edges) < kAdjacent * static_cast<u64>(size) * (size - 1)) return false;
  if (lane_id() == 0) {
    const bool in_word = size <= 64;
    const u32 at = atomicAdd(in_word ? &block_counters()->words : &block_counters()->bitmaps, 1u);
    root_list()[in_word ? at : kRowsPerPart - 1 - at] = static_cast<u16>(i);
  }
  return true;
}

// Count in the root subgraphs of the list; `shared_store` of `shared_words` is in shared memory, `store` for larger ones.
// A function of its own, lest its registers are spilled in the other search, and the other way round.
__device__ __noinline__ Tally count_in_roots(RootSearch search, u32* shared_store, i64 shared_words, u32* store) {
  BlockCounters* counters = block_counters();
  const int warps = blockDim.x >> 5;
  __syncthreads();
  u32* own = (warps * kWordRootWords <= shared_words ? shared_store : store) + warp_in_block() * kWordRootWords;
  const WordRoot root = {reinterpret_cast<u64*>(own), reinterpret_cast<u16*>(own + 128)};
  for (;;) {
    const u32 next = take(&counters->first, 1);
    if (next >= counters->words || stop_asked(search.stop)) break;
    const int i = root_list()[next];
    search.search_word(root, search.table + row_start(i), row_words(i));
  }
  const u32 bitmaps = counters->bitmaps;
  __syncthreads();
  for (u32 at = 0; at < bitmaps; ++at) {
    const int i = root_list()[kRowsPerPart - 1 - at];
    const u32* row = search.table + row_start(i);
    u32 present = 0;
    for (int w = lane_id(); w < row_words(i); w += 32) present += __popc(row[w]);
    const int size = static_cast<int>(__reduce_add_sync(kAll, present));
    search.search_bitmap(row, size, bitmap_root_words(size, warps) <= shared_words ? shared_store : store, counters);
  }
  return search.tally;
}

// Count below a part of the rows of a vertex: those numbered part, part + parts, ..., largest first; `a` as above.
// `made` is the table, if there is one, which may lie in `table` already. Rows that have root subgraphs are listed.
template <bool IN_GLOBAL>
DEVICE u64 count_part(const Rows& graph, i64 a, int degree, int from, int to, int part, int parts, u32* counter,
                      u32* workspace_words, u32* table, const u32* made, const u32* stop) {
  const int warps = blockDim.x >> 5;
  const int width = row_words(degree);
  u32* own = workspace_words + warp_in_block() * (kTableQueue + kWalked * width);
  const Workspace workspace = {own, own + kTableQueue, width, stop};
  if (threadIdx.x == 0) *counter = 0;
  if (kRooted && threadIdx.x == 0) block_counters()->words = block_counters()->bitmaps = block_counters()->first = 0;
  if (!made) {
    for (u32 w = threadIdx.x; w < row_start(degree); w += blockDim.x) table[w] = 0;
    __syncthreads();
    for (int i = 1 + warp_in_block(); i < to; i += warps) build_row(graph, a, i, table);
  } else if (table != made) {
    for (u32 w = threadIdx.x; w < row_start(to); w += blockDim.x) table[w] = made[w];
  }
  __syncthreads();
  u64 found = 0;
  for (;;) {
    const int i = to - 1 - part - parts * static_cast<int>(take(counter, 1));
    if (i < from || stop_asked(stop)) break;
    if (kRooted && has_root(table, i, own)) continue;
    found += count_below<IN_GLOBAL>(table, table + row_start(i), row_words(i), workspace);
  }
  return found;
}

// Vertices of many out-neighbours, a block for each part of one; `tasks` as find_heavy lists them.
extern "C" __global__ void __launch_bounds__(512, 2)
    count_heavy(const i64* indptr, const u32* indices, const i64* split, const i64* places, u32* table_words,
                const i64* table_starts, i64 first_table, const u32* tasks, const u32* num_tasks, i64 first, i64 last,
                i64 shared_words, i64 shared_root_words, u32* store, i64 store_words, i64 root_words, u32* next,
                const u32* stop, u64* result) {
  const Rows graph = {indptr, indices, split, places};
  const Tables tables = {table_words, table_starts, first_table};
  const int warps = blockDim.x >> 5;
  u32* own_store = store + blockIdx.x * store_words;
  u32* shared_store = dynamic_shared + kControlWords;
  const i64 used_words = kControlWords + shared_root_words;
  RootSearch search = {nullptr, nullptr, stop, {result, 0, 0}};
  u64 total = 0;
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
    const i64 workspace_words = warps * (kTableQueue + kWalked * row_words(degree));
    u32* made = table_words ? tables.of(v) : nullptr;
    const bool fits = used_words + workspace_words + row_start(degree) <= shared_words;
    u64 found;
    // The same code twice, so that the compiler knows which of the two memories it reads.
    if (fits) {
      u32* words = dynamic_shared + used_words;
      found = count_part<false>(graph, place, degree, from, to, part, parts, dynamic_shared + 1, words,
                                words + workspace_words, made, stop);
    } else {
      found = count_part<true>(graph, place, degree, from, to, part, parts, dynamic_shared + 1, own_store,
                               made ? made : own_store + workspace_words, made, stop);
    }
    total += found;
    if constexpr (kRooted) {
      u32* words = fits ? dynamic_shared + used_words : own_store;
      search.table = fits ? words + workspace_words : made ? made : words + workspace_words;
      search.queue = words + warp_in_block() * (kTableQueue + kWalked * row_words(degree));
      search.tally = count_in_roots(search, shared_store, shared_root_words, own_store + store_words - root_words);
    }
  }
  WideSum{total}.add_lanes_to(result);
  if (kRooted) search.tally.flush();
}
