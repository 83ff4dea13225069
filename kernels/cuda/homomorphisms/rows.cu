// Run a row program: homomorphism counts by dynamic programming over each row; a block per row.
//
// Local vectors have an entry per entry of the row, dense ones an entry per vertex or, with rows of arcs (v, x), per
// arc of v: the vertices of v's neighbourhood. With kOnGraph entries of rows are those of arcs, and dense vectors have an
// entry per vertex. Ids are degree ranks, so most of
// what is read of a dense vector is its beginning: that part is in shared memory, the rest in the block's workspace.
#include "homomorphisms/row_program.cuh"

#define CONSTANT __host__ __device__ constexpr

CONSTANT DenseVector dense_vector(int number) { return kDense[number]; }

CONSTANT bool has_wide_pass() {
  for (int o = 0; o < kNumOps; ++o)
    if (kOps[o].code == WIDEN) return true;
  return false;
}

CONSTANT int first_push() {
  int o = 0;
  while (o < kNumOps && kOps[o].code != PUSH && kOps[o].code != PUSH_EDGES) ++o;
  return o;
}

// The local vector that a dense one was scattered from, -1 for other dense vectors.
CONSTANT int scattered_from(int dense) {
  for (int o = 0; o < kNumOps; ++o)
    if (kOps[o].code == SCATTER && kOps[o].target == dense) return kOps[o].source;
  return -1;
}

constexpr bool kWide = has_wide_pass();
constexpr int kLongRow = 1024, kLongThreads = 256;  // arcs of a row of several warps, and how many threads that are

// What an operation works on: entries of the row or vertices within reach, each of which is one thread's, or more.
enum Works { NOTHING, ENTRIES, REACHED, ALL, EDGES };

CONSTANT Works works_on(int code) {
  switch (code) {
    case LOAD:
      return NOTHING;
    case ONES: case SCATTER: case MULTIPLY: case WEIGH: case WEIGH_ARC: case WEIGH_ACROSS: case GATHER: case STORE_LOCAL:
    case SUM:
      return ENTRIES;
    case COPY_DENSE: case MULTIPLY_DENSE: case WEIGH_DENSE: case SUM_DENSE: case SUM_PRODUCT:
      return REACHED;
    case SUM_EDGES:
      return EDGES;
    default:
      return ALL;
  }
}

// Whether an operation has to wait until all threads are done with those since the last barrier.
CONSTANT bool waits(Works since, int code) {
  const Works works = works_on(code);
  if (since == NOTHING || works == NOTHING) return false;
  if (since == EDGES && (code == SUM_DENSE || code == SUM_PRODUCT || code == SUM_EDGES)) return false;  // all read
  return since != works || works == ALL;
}

CONSTANT Works works_since(Works since, int code) {
  if (works_on(code) == NOTHING || (since == EDGES && !waits(since, code))) return since;
  return works_on(code);
}

// What the operations before one have worked on since the last barrier.
CONSTANT Works works_before(int number) {
  Works since = NOTHING;
  for (int o = 0; o < number; ++o) since = works_since(since, kOps[o].code);
  return since;
}

struct RowRunner {
  const i64* indptr;  // what passes read
  const u32* indices;
  i64 num_rows;
  i64 length;                 // of a dense vector
  Value* tables;              // Value[number, num_rows]
  const Value* dense_tables;  // Value[number, dense_rows]: over what dense vectors have entries for
  i64 dense_rows;
  Value* arc_tables;  // Value[number, num_arcs]
  i64 num_arcs;
  const u32* reverse;
  const i64* common_indptr;
  const u32* common;
  Value* local;  // this block's Value[kNumLocal, max_degree]
  i64 max_degree;
  Value *near, *far;              // dense vectors: of the first `window` vertices, and of the others
  u32 *near_narrow, *far_narrow;  // the same of those whose numbers have 32 bits
  i64 window;
  u32 num_long;  // vertices of kLongRow arcs or more: the first ones
  Value* scalars;
  u32* reached;  // the vertices within two steps of v
  u32* bitmap;   // the same as bits; all zero between rows
  u32* num_reached;

  i64 v, begin, base;  // the row, its first entry, and the entry that is number 0 of dense vectors
  i64 span;            // entries that dense vectors have for this row
  int degree;
  const u32* row;  // places of arcs, or the neighbours of v

  DEVICE Value get(DenseVector vector, u32 vertex) const {
    const int place = vector.place;
    const i64 at = vertex - base;
    // Two instructions, as in push.
    if (vector.narrow) {
      u32 number;
      if (at < window) {
        number = near_narrow[place * window + at];
      } else {
        number = far_narrow[place * length + at];
      }
      return reduced(static_cast<Value>(number));
    } else if (at < window) {
      return near[place * window + at];
    } else {
      return far[place * length + at];
    }
  }

  DEVICE void set(DenseVector vector, u32 vertex, Value value) const {
    const int place = vector.place;
    const i64 at = vertex - base;
    if (vector.narrow) {
      (at < window ? near_narrow[place * window + at] : far_narrow[place * length + at]) = static_cast<u32>(value);
    } else {
      (at < window ? near[place * window + at] : far[place * length + at]) = value;
    }
  }

  // The number of entry i in dense vectors, and among the rows that passes read.
  DEVICE u32 entry(int i) const { return kOnGraph ? indices[row[i]] : row[i]; }

  DEVICE bool wanted(u32 z) const { return !kSymmetric || z <= v; }

  DEVICE i64 reached_end() const { return kWide ? span : *num_reached; }
  DEVICE u32 reached_at(i64 r) const { return kWide ? static_cast<u32>(base + r) : reached[r]; }

  template <typename Visit>
  DEVICE void for_neighbours(Visit visit) const {
    for (int i = threadIdx.x; i < degree; i += blockDim.x) visit(i);
  }

  template <typename Visit>
  DEVICE void for_reached(Visit visit) const {
    for (i64 r = threadIdx.x; r < reached_end(); r += blockDim.x) visit(reached_at(r));
  }

  // A value times an arc table at an arc, if the table's number is not negative.
  DEVICE Value weighed(int table, Value value, i64 arc) const {
    return table < 0 ? value : reduced(value * arc_tables[table * num_arcs + arc]);
  }

  // Call visit(i, z, arc) for the neighbours z of neighbour i of v, as far as these are wanted; a warp for each i, several
  // warps for hubs.
  template <typename Visit>
  DEVICE void for_second_neighbours(Visit visit) const {
    int number_long = 0;
    if (!kArcs && num_long) {
      number_long = count_long();
      const int own = threadIdx.x % kLongThreads, groups = blockDim.x / kLongThreads;
      for (int i = threadIdx.x / kLongThreads; i < number_long; i += groups) walk(i, own, kLongThreads, visit);
    }
    for (int i = number_long + warp_in_block(); i < degree; i += blockDim.x >> 5) walk(i, lane_id(), 32, visit);
  }

  // How many entries are hubs: the first ones, as entries ascend.
  DEVICE int count_long() const {
    if constexpr (!kOnGraph) return lower_bound(row, degree, num_long);
    int found = 0;
    for (int left = degree; left > 0;) {
      const int half = left >> 1;
      const bool is_long = entry(found + half) < num_long;
      found += is_long ? half + 1 : 0;
      left = is_long ? left - half - 1 : half;
    }
    return found;
  }

  template <typename Visit>
  DEVICE void walk(int i, int thread, int threads, Visit visit) const {
    const u32 x = entry(i);
    const i64 end = indptr[x + 1];
    for (i64 j = indptr[x] + thread; j < end; j += threads) {
      const u32 z = indices[j];
      if (!wanted(z)) break;  // rows ascend
      visit(i, z, j);
    }
  }

  DEVICE void add_scalar(int scalar, Value sum) {
    sum = warp_sum(reduced(sum));
    if (lane_id() == 0) atomicAdd(&scalars[scalar], sum);
  }

  DEVICE void push(DenseVector vector, u32 z, Value amount) {
    const int place = vector.place;
    const i64 at = z - base;
    // Two instructions, so that the compiler knows which of the two memories is added to.
    if (vector.narrow) {
      const u32 number = static_cast<u32>(amount);
      if (at < window) {
        atomicAdd(&near_narrow[place * window + at], number);
      } else {
        atomicAdd(&far_narrow[place * length + at], number);
      }
    } else if (at < window) {
      atomicAdd(&near[place * window + at], amount);
    } else {
      atomicAdd(&far[place * length + at], amount);
    }
  }

  // The same in 32 bits, of one; z is listed, if it is the first.
  template <int D>
  DEVICE void push_one(u32 z) {
    constexpr int place = kDense[D].place;
    const i64 at = z - base;
    // Two instructions, as above.
    const u32 before =
        at < window ? atomicAdd(&near_narrow[place * window + at], 1u) : atomicAdd(&far_narrow[place * length + at], 1u);
    if (before == 0) reached[atomicAdd(num_reached, 1u)] = z;
  }

  // Call visit(z) for walks v, y, z in the neighbourhood of each neighbour x of v, once for those with x and y exchanged.
  template <typename Visit>
  DEVICE void for_edges(Visit visit) const {
    const int lane = lane_id(), warps = blockDim.x >> 5;  // a power of two
    for (int first = 0; first < degree; first += 32) {
      // The lists of 32 neighbours are cut into pieces, which are dealt to the warps.
      const bool in = first + lane < degree;
      const u32 own = in ? row[first + lane] : 0, a = in ? reverse[begin + first + lane] : 0;
      const i64 own_list = in ? common_indptr[a] : 0;
      const int own_length = in ? static_cast<int>(common_indptr[a + 1] - own_list) : 0;
      const int own_piece = (warp_in_block() - first - lane) & (warps - 1);
      for (u32 some = __ballot_sync(kAll, 32 * own_piece < own_length); some; some &= some - 1) {
        const int i = __ffs(some) - 1, size = __shfl_sync(kAll, own_length, i);
        const u32 x = __shfl_sync(kAll, own, i);
        const i64 list = __shfl_sync(kAll, own_list, i);
        for (int piece = __shfl_sync(kAll, own_piece, i); 32 * piece < size; piece += warps)
          walk_edges(x, list, 32 * piece + lane, size, visit);
      }
    }
  }

  // The same for a piece of a list of the neighbours y that v and x have in common, one of a lane.
  template <typename Visit>
  DEVICE void walk_edges(u32 x, i64 list, int at, int size, Visit visit) const {
    const int lane = lane_id();
    const u32 b = at < size ? common[list + at] : 0;
    const bool in = at < size && indices[b] > x;  // x < y is enough
    const i64 own_from = in ? common_indptr[b] : 0, own_to = in ? common_indptr[b + 1] : 0;
    u32 todo = __ballot_sync(kAll, own_from < own_to);
    int j = todo ? __ffs(todo) - 1 : 0;
    i64 from = __shfl_sync(kAll, own_from, j), to = __shfl_sync(kAll, own_to, j);
    u32 arc = from + lane < to ? common[from + lane] : 0;
    while (todo) {
      // The next list is read before the vertices of this one.
      todo &= todo - 1;
      j = todo ? __ffs(todo) - 1 : 0;
      const i64 next = __shfl_sync(kAll, own_from, j), next_to = __shfl_sync(kAll, own_to, j);
      const u32 next_arc = next + lane < next_to ? common[next + lane] : 0;
      for (i64 k = from + lane; k < to; k += 32) {
        const u32 z = indices[k < from + 32 ? arc : common[k]];
        if (!wanted(z)) break;
        visit(z);
      }
      __syncwarp();
      from = next;
      to = next_to;
      arc = next_arc;
    }
  }

  // Dense product P at a vertex.
  template <int P, int C = 0>
  DEVICE Value dense_product(u32 z) const {
    if constexpr (C < kDenseFactors && kDenseProducts[P][C < kDenseFactors ? C : 0] >= 0) {
      return reduced(get(dense_vector(kDenseProducts[P][C]), z) * dense_product<P, C + 1>(z));
    } else {
      return 1;
    }
  }

  // How often the number of a dense vector counts.
  DEVICE Value times(u32 z) const { return kSymmetric && z != v ? 2 : 1; }

  // local[T][i] = sum of dense[D], times arc table W, over the neighbours of neighbour i.
  template <int T, int D, int W>
  DEVICE void pull() {
    constexpr int from = W < 0 ? scattered_from(D) : -1;
    for (int i = warp_in_block(); i < degree; i += blockDim.x >> 5) {
      const u32 x = entry(i);
      const i64 first = indptr[x];
      const int length = static_cast<int>(indptr[x + 1] - first);
      Value sum = 0;
      if (from >= 0 && degree < length >> 3) {
        // Only common neighbours of x and v count: look up the few of v among the many of x.
        for (int j = lane_id(); j < degree; j += 32) {
          const u32 other = entry(j);
          const int at = lower_bound(indices + first, length, other);
          if (at < length && indices[first + at] == other) sum += local[(from < 0 ? 0 : from) * max_degree + j];
        }
      } else {
        for (int j = lane_id(); j < length; j += 32) sum += weighed(W, get(dense_vector(D), indices[first + j]), first + j);
      }
      sum = reduced(warp_sum(reduced(sum)));
      if (lane_id() == 0) local[T * max_degree + i] = sum;
    }
  }

  // List the neighbours of the entries.
  DEVICE void reach() {
    for_second_neighbours([&](int, u32 z, i64) {
      const u32 at = static_cast<u32>(z - base), bit = 1u << (at & 31);
      if (load_volatile(&bitmap[at >> 5]) & bit) return;
      if (!(atomicOr(&bitmap[at >> 5], bit) & bit)) reached[atomicAdd(num_reached, 1u)] = z;
    });
    __syncthreads();
  }

  // local[vector][i] *= factor.
  DEVICE void scale(int vector, int i, Value factor) {
    Value& own = local[vector * max_degree + i];
    own = reduced(own * factor);
  }

  DEVICE void reduce_dense(DenseVector vector) {
    if (kModulus && !vector.narrow) {
      __syncthreads();
      for_reached([&](u32 z) { set(vector, z, reduced(get(vector, z))); });
    }
  }

  // --- operations that long programs repeat: PER_OP says whether the compiler inlines them --------------------------

  PER_OP void write_ones(int t) {
    for_neighbours([&](int i) { local[t * max_degree + i] = 1; });
  }

  PER_OP void weigh(int t, int s) {
    for_neighbours([&](int i) { scale(t, i, tables[s * num_rows + row[i]]); });
  }

  PER_OP void weigh_arc(int t, int s) {
    for_neighbours([&](int i) { scale(t, i, arc_tables[s * num_arcs + begin + i]); });
  }

  PER_OP void push_all(DenseVector t, int s, int w) {
    for_second_neighbours(
        [&](int i, u32 z, i64 arc) { push(t, z, weighed(w, local[s * max_degree + i], arc)); });
    reduce_dense(t);
  }

  PER_OP void copy_dense(DenseVector t, DenseVector s) {
    for_reached([&](u32 z) { set(t, z, get(s, z)); });
  }

  PER_OP void multiply_dense(DenseVector t, DenseVector s) {
    for_reached([&](u32 z) { set(t, z, reduced(get(t, z) * get(s, z))); });
  }

  PER_OP void weigh_dense(DenseVector t, int s) {
    for_reached([&](u32 z) { set(t, z, reduced(get(t, z) * dense_tables[s * dense_rows + z])); });
  }

  PER_OP void sum_dense(int t, DenseVector s) {
    Value sum = 0;
    for_reached([&](u32 z) { sum += times(z) * get(s, z); });
    add_scalar(t, sum);
  }

  PER_OP void clear_dense(DenseVector t) {
    for_reached([&](u32 z) { set(t, z, 0); });
  }

  template <int FIRST = 0, int LAST = kNumOps>
  DEVICE void run_ops() {
    if constexpr (LAST - FIRST > 1) {
      run_ops<FIRST, (FIRST + LAST) / 2>();
      run_ops<(FIRST + LAST) / 2, LAST>();
    } else if constexpr (LAST > FIRST) {
      run_op<FIRST>();
    }
  }

  template <int O>
  DEVICE void run_op() {
    constexpr RowOp op = kOps[O];
    constexpr int t = op.target, s = op.source, w = op.weight;
    if constexpr (waits(works_before(O), op.code)) __syncthreads();
    if constexpr (O == first_push() && !kWide && !kOnesFirst) reach();
    if constexpr (op.code == ONES) {
      write_ones(t);
    } else if constexpr (op.code == PULL) {
      pull<t, s, w>();
    } else if constexpr (op.code == SCATTER) {
      for_neighbours([&](int i) { set(dense_vector(t), entry(i), local[s * max_degree + i]); });
    } else if constexpr (op.code == MULTIPLY) {
      for_neighbours([&](int i) { scale(t, i, local[s * max_degree + i]); });
    } else if constexpr (op.code == WEIGH) {
      weigh(t, s);
    } else if constexpr (op.code == WEIGH_ARC) {
      weigh_arc(t, s);
    } else if constexpr (op.code == WEIGH_ACROSS) {
      const u32* across = common + common_indptr[reverse[v]];
      for_neighbours([&](int i) { scale(t, i, arc_tables[s * num_arcs + across[i]]); });
    } else if constexpr (op.code == GATHER) {
      for_neighbours([&](int i) { local[t * max_degree + i] = get(dense_vector(s), entry(i)); });
    } else if constexpr (op.code == STORE_LOCAL) {
      for_neighbours([&](int i) { arc_tables[t * num_arcs + begin + i] = local[s * max_degree + i]; });
    } else if constexpr (op.code == LOAD) {
      if (threadIdx.x == (32 * t) % blockDim.x) scalars[t] = tables[s * num_rows + v];  // another warp for each
    } else if constexpr (op.code == PUSH && O == first_push() && kOnesFirst) {
      for_second_neighbours([&](int, u32 z, i64) { push_one<t>(z); });
    } else if constexpr (op.code == PUSH) {
      push_all(dense_vector(t), s, w);
    } else if constexpr (op.code == PUSH_EDGES) {
      for_edges([&](u32 z) { push(dense_vector(t), z, 2); });
      reduce_dense(dense_vector(t));
    } else if constexpr (op.code == SUM_EDGES) {
      Value sum = 0;
      for_edges([&](u32 z) { sum += 2 * times(z) * dense_product<s>(z); });
      add_scalar(t, sum);
    } else if constexpr (op.code == SUM_PRODUCT) {
      Value sum = 0;
      for_reached([&](u32 z) { sum += times(z) * dense_product<s>(z); });
      add_scalar(t, sum);
    } else if constexpr (op.code == COPY_DENSE) {
      copy_dense(dense_vector(t), dense_vector(s));
    } else if constexpr (op.code == MULTIPLY_DENSE) {
      multiply_dense(dense_vector(t), dense_vector(s));
    } else if constexpr (op.code == WEIGH_DENSE) {
      weigh_dense(dense_vector(t), s);
    } else if constexpr (op.code == WIDEN) {
      for (i64 z = base + warp_in_block(); z < base + span; z += blockDim.x >> 5) {
        Value sum = 0;
        for (i64 j = indptr[z] + lane_id(); j < indptr[z + 1]; j += 32) sum += weighed(w, get(dense_vector(s), indices[j]), j);
        sum = reduced(warp_sum(reduced(sum)));
        if (lane_id() == 0) set(dense_vector(t), static_cast<u32>(z), sum);
      }
    } else if constexpr (op.code == SUM) {
      Value sum = 0;
      for_neighbours([&](int i) { sum += local[s * max_degree + i]; });
      add_scalar(t, sum);
    } else {
      sum_dense(t, dense_vector(s));
    }
  }

  template <int FIRST = 0, int LAST = kNumOps>
  DEVICE void clear() {
    if constexpr (LAST - FIRST > 1) {
      clear<FIRST, (FIRST + LAST) / 2>();
      clear<(FIRST + LAST) / 2, LAST>();
    } else if constexpr (LAST > FIRST) {
      constexpr RowOp op = kOps[FIRST];
      if constexpr (op.code == SCATTER) {
        for_neighbours([&](int i) { set(dense_vector(op.target), entry(i), 0); });
      } else if constexpr (op.code == PUSH || op.code == PUSH_EDGES || op.code == COPY_DENSE || op.code == WIDEN) {
        clear_dense(dense_vector(op.target));
      }
    }
  }
};

extern "C" __global__ void __launch_bounds__(1024, 1)
    run_rows(const i64* starts, const u32* entries, i64 num_rows, const i64* indptr, const u32* indices,
             const i64* blocks, i64 num_blocks, i64 first, i64 last, Value* tables, const Value* dense_tables,
             i64 dense_rows, Value* arc_tables, i64 num_arcs, const u32* reverse, const i64* common_indptr,
             const u32* common, Value* local, i64 max_degree, Value* far, u32* far_narrow, i64 length, i64 window,
             u32* reached, u32* bitmaps, i64 bitmap_words, u32* next, const u32* stop, Value* totals, double* estimates) {
  constexpr int control_words = 4;
  const i64 block = blockIdx.x;
  RowRunner run;
  run.indptr = indptr;
  run.indices = indices;
  run.num_rows = num_rows;
  run.length = length;
  run.tables = tables;
  run.dense_tables = dense_tables;
  run.dense_rows = dense_rows;
  run.arc_tables = arc_tables;
  run.num_arcs = num_arcs;
  run.reverse = reverse;
  run.common_indptr = common_indptr;
  run.common = common;
  run.local = local + block * kNumLocal * max_degree;
  run.max_degree = max_degree;
  Sums* sums = reinterpret_cast<Sums*>(dynamic_shared + control_words);
  run.scalars = reinterpret_cast<Value*>(sums + 1);
  run.near = run.scalars + kNumScalars;
  run.near_narrow = reinterpret_cast<u32*>(run.near + kNumWide * window);
  run.far = far + (window < length ? block * kNumWide * length : 0);
  run.far_narrow = far_narrow + (window < length ? block * kNumNarrow * length : 0);
  run.window = window;
  run.reached = reached + (kWide ? 0 : block * length);
  // A null pointer: the bitmap is in shared memory.
  u32* shared_bitmap = run.near_narrow + kNumNarrow * window;
  run.bitmap = bitmaps ? bitmaps + block * bitmap_words : shared_bitmap;
  run.num_reached = dynamic_shared + 1;
  run.base = 0;
  // Ids are degree ranks.
  run.num_long = 0;
  if (!kArcs && (kOnGraph || max_degree >= kLongRow) && blockDim.x >= kLongThreads) {
    for (i64 some = dense_rows; some > 0; some >>= 1) {
      const i64 at = run.num_long + (some >> 1);
      const bool is_long = indptr[at + 1] - indptr[at] >= kLongRow;
      if (is_long) run.num_long = static_cast<u32>(at + 1);
      if (is_long) --some;
    }
  }
  run.span = num_rows;
  for (i64 i = threadIdx.x; i < kNumWide * window; i += blockDim.x) run.near[i] = 0;
  for (i64 i = threadIdx.x; i < kNumNarrow * window; i += blockDim.x) run.near_narrow[i] = 0;
  for (i64 i = threadIdx.x; i < bitmap_words; i += blockDim.x) run.bitmap[i] = 0;
  for (int p = threadIdx.x; p < kNumProducts; p += blockDim.x) sums->totals[p] = 0, sums->estimates[p] = 0;
  for (;;) {
    if (threadIdx.x == 0) dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
    if (threadIdx.x == 0) *run.num_reached = 0;
    for (int i = threadIdx.x; i < kNumScalars; i += blockDim.x) run.scalars[i] = 0;
    __syncthreads();
    const i64 v = first + dynamic_shared[0];
    if (v >= last) break;
    run.v = v;
    run.begin = starts[v];
    run.degree = static_cast<int>(starts[v + 1] - run.begin);
    run.row = entries + run.begin;
    if (kArcs || kOnGraph) {
      // Of an arc without common neighbours every sum is 0.
      if (run.degree == 0) {
        __syncthreads();
        continue;
      }
      if (kArcs) {
        const i64 block = lower_bound(blocks, num_blocks + 1, v + 1) - 1;
        run.base = blocks[block];
        run.span = blocks[block + 1] - run.base;
      }
    }
    run.run_ops();
    __syncthreads();
    if (threadIdx.x == 0) add_products(run.scalars, v, num_rows, tables, *sums);
    run.clear();
    if constexpr (!kWide && !kOnesFirst && first_push() < kNumOps) {
      run.for_reached([&](u32 z) { run.bitmap[(z - run.base) >> 5] = 0; });
    }
    __syncthreads();
  }
  for (int p = threadIdx.x; p < kNumProducts; p += blockDim.x) {
    atomicAdd(&totals[p], sums->totals[p]);
    atomicAdd(&estimates[p], sums->estimates[p]);
  }
}
