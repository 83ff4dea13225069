// Count triangles, and pairs of triangles with an edge in common (diamonds), in one launch: the rows of neighbours are
// looked up in bitmaps of others. See longwall.kernels.cpu.triangles and
// longwall.kernels.cpu.homomorphisms.diamonds.
//
// A block takes as many vertices as it has warps: it does those of many neighbours one after the other, each with a
// bitmap in shared memory; then every warp does one of few, and searches.
#include "row_bitmap.cuh"

constexpr int kWarps = 8;      // of a block
constexpr int kFew = 32;       // neighbours that are searched
constexpr i64 kLongRow = 256;  // arcs of a vertex that are too many for a warp

struct Graph {
  const i64* indptr;
  const u32* indices;
  const i64* split;
  i64 num_vertices;
};

// The triangles of the arcs first to last - 1, which lead from the largest vertex to the middle one: at x, those of the
// longer one of two lists of smaller neighbours is a bitmap.
struct Triangles {
  i64 first, last;

  DEVICE Row row(const Graph& g, i64 x) const {
    return {g.indices + g.indptr[x], static_cast<int>(g.split[x] - g.indptr[x])};
  }

  DEVICE i64 begin(const Graph& g, i64 x) const { return g.indptr[x]; }

  // How many entries of the row of `other`, to which an arc of x leads, are looked up.
  DEVICE int length(const Graph& g, i64 x, const Row& row, i64 arc, u32 other) const {
    const i64 from = g.indptr[other], to = g.split[other];
    const int size = static_cast<int>(to - from);
    if (arc < g.split[x]) return size < row.length && arc >= first && arc < last ? size : 0;
    if (size > row.length || to <= first || from >= last) return 0;
    if (from >= first && to <= last) return size;
    const i64 back = from + lower_bound(g.indices + from, size, static_cast<u32>(x));
    return back >= first && back < last ? size : 0;
  }

  DEVICE u64 count(u32 common) const { return common; }
};

// Pairs of triangles whose common edge leads from a vertex to a larger one.
struct Diamonds {
  DEVICE Row row(const Graph& g, i64 x) const {
    return {g.indices + g.indptr[x], static_cast<int>(g.indptr[x + 1] - g.indptr[x])};
  }

  DEVICE i64 begin(const Graph& g, i64 x) const { return g.split[x]; }

  DEVICE int length(const Graph& g, i64, const Row&, i64, u32 other) const {
    return static_cast<int>(g.indptr[other + 1] - g.indptr[other]);
  }

  DEVICE u64 count(u32 common) const { return common ? static_cast<u64>(common) * (common - 1) / 2 : 0; }
};

// Look the rows up that the arcs of x lead to, `step` arcs at once for each of some warps.
template <typename Kind, typename Place>
DEVICE u64 look_up(const Graph& g, const Kind& kind, i64 x, const Row& row, int warp, int warps, const Place& place) {
  const int lane = lane_id();
  const i64 begin = kind.begin(g, x), end = g.indptr[x + 1];
  const int step = static_cast<int>(min(max((end - begin + warps - 1) / warps, i64(4)), i64(32)));
  u64 total = 0;
  for (i64 base = begin + static_cast<i64>(step) * warp; base < end; base += static_cast<i64>(step) * warps) {
    const bool in = lane < step && base + lane < end;
    const u32 other = in ? g.indices[base + lane] : 0;
    const int length = in ? kind.length(g, x, row, base + lane, other) : 0;
    const i64 from = in ? g.indptr[other] : 0;
    for (u32 todo = __ballot_sync(kAll, length > 0); todo; todo &= todo - 1) {
      const int i = __ffs(todo) - 1;
      const u32* entries = g.indices + __shfl_sync(kAll, from, i);
      const int size = __shfl_sync(kAll, length, i);
      u32 found = 0;
      for (int j = lane; j < size; j += 32) found += place(entries[j]) >= 0;
      const u32 common = __reduce_add_sync(kAll, found);
      if (lane == 0) total += kind.count(common);
    }
  }
  return total;
}

template <typename Kind>
DEVICE void count_all(const Graph& g, const Kind& kind, i64 first, i64 last, i64 words, LaunchState* shared, const u32* stop,
                      u64* result) {
  const int warp = warp_in_block(), lane = lane_id();
  u32* bits = dynamic_shared + 4;
  u64 total = 0;
  for (i64 w = threadIdx.x; w < words; w += blockDim.x) bits[w] = 0;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(&shared->next, 1u);
    __syncthreads();
    const i64 from = first + static_cast<i64>(dynamic_shared[0]) * kWarps;
    if (from >= last) break;
    const bool in = lane < kWarps && from + lane < last;
    const int length = in ? kind.row(g, from + lane).length : 0;
    const i64 arcs = in ? g.indptr[from + lane + 1] - kind.begin(g, from + lane) : 0;
    const bool any = length > 0 && arcs > 0, heavy = any && (length > kFew || arcs > kLongRow);
    for (u32 todo = __ballot_sync(kAll, heavy); todo; todo &= todo - 1) {
      const i64 x = from + __ffs(todo) - 1;
      const Row row = kind.row(g, x);
      const Bitmap<false> place = fill_bitmap<false>(row, g.num_vertices, words, bits, nullptr);
      __syncthreads();
      total += look_up(g, kind, x, row, warp, kWarps, place);
      __syncthreads();
      clear_bitmap(place, bits);
      __syncthreads();
    }
    if (__ballot_sync(kAll, any && !heavy) >> warp & 1) {
      const Row row = kind.row(g, from + warp);
      total += look_up(g, kind, from + warp, row, 0, 1, row);
    }
  }
  finish(shared, total, result);
}

extern "C" __global__ void __launch_bounds__(256)
    count_triangles(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 first_arc, i64 last_arc,
                    i64 first, i64 last, i64 words, LaunchState* shared, const u32* stop, u64* result) {
  count_all(Graph{indptr, indices, split, num_vertices}, Triangles{first_arc, last_arc}, first, last, words, shared, stop,
            result);
}

extern "C" __global__ void __launch_bounds__(256)
    count_diamonds(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 first, i64 last,
                   i64 words, LaunchState* shared, const u32* stop, u64* result) {
  count_all(Graph{indptr, indices, split, num_vertices}, Diamonds{}, first, last, words, shared, stop, result);
}
