// Grow patterns by one edge (longwall.kernels.interface.pattern_growth): count, mark, write. A thread or a warp has a row.
#include "common.cuh"
#include "generated.cuh"


struct Graph {
  const i64* runs;
  const int* types;
  const i64* begins;
  const u32* indices;
  const int* targets;
};

// Patterns of a batch; arrays of `width` entries a pattern.
struct Patterns {
  i64 width;
  const i64* first;
  const int *sizes, *columns, *labels, *path_sizes, *paths, *known;
  const i64 *forward, *backward;
};

#define GRAPH const i64 *runs, const int *types, const i64 *begins, const u32 *indices, const int *targets
#define PATTERNS                                                                                                       \
  i64 width, const i64 *first, const int *sizes, const int *columns, const int *labels, const int *path_sizes,         \
      const int *paths, const int *known, const i64 *forward, const i64 *backward
#define ARGUMENTS                                                                                                      \
  const Graph g{runs, types, begins, indices, targets};                                                                \
  const Patterns q{width, first, sizes, columns, labels, path_sizes, paths, known, forward, backward};

// The type of the edge from u to a vertex of a label; -1 where there is none.
DEVICE int edge_type(const Graph& g, u32 u, u32 vertex, int label) {
  i64 run = g.runs[u], end = g.runs[u + 1];
  while (run < end) {
    const i64 middle = (run + end) >> 1;
    if (g.targets[g.types[middle]] < label) {
      run = middle + 1;
    } else {
      end = middle;
    }
  }
  for (; run < g.runs[u + 1] && g.targets[g.types[run]] == label; ++run) {
    const i64 begin = g.begins[run], length = g.begins[run + 1] - begin;
    const i64 place = lower_bound(g.indices + begin, length, vertex);
    if (place < length && g.indices[begin + place] == vertex) return g.types[run];
  }
  return -1;
}

// A row: its pattern (of the batch), and its vertices in the order of the code.
// kWidth, generated: vertices of the largest pattern, or more.
struct Row {
  int pattern, size;
  u32 vertices[kWidth];

  DEVICE void load(const Patterns& q, const u32* rows, i64 num_rows, i64 row) {
    pattern = static_cast<int>(rows[row] - q.first[0]);
    size = q.sizes[pattern];
    const int* columns = q.columns + pattern * q.width;
    for (int y = 0; y < size; ++y) vertices[y] = rows[columns[y] * num_rows + row];
  }

  DEVICE bool has(u32 vertex) const {
    bool found = false;
    for (int y = 0; y < size; ++y) found |= vertices[y] == vertex;
    return found;
  }
};

// The types of the edges from the vertex at a place of the path to all vertices of the row.
struct Edges {
  int found[kWidth];

  DEVICE void find(const Graph& g, const Patterns& q, const Row& row, int place) {
    const int at = q.paths[row.pattern * q.width + place];
    const int* known = q.known + (row.pattern * q.width + place) * q.width;
    const int* labels = q.labels + row.pattern * q.width;
    for (int y = 0; y < row.size; ++y) {
      found[y] = known[y];
      if (known[y] < 0 && y != at) found[y] = edge_type(g, row.vertices[at], row.vertices[y], labels[y]);
    }
  }

  // How many vertices of a run are not in the row.
  DEVICE i64 others(const Graph& g, i64 run, int size) const {
    i64 count = g.begins[run + 1] - g.begins[run];
    const int type = g.types[run];
    for (int y = 0; y < size; ++y) count -= found[y] == type;
    return count;
  }
};

// Call `visit_run(place, run, extension, edges)` for every run that a row can grow by, and `visit_edge(place, extension)`
// for every edge between its vertices that it can grow by; edges first, as the CPU does.
template <typename VisitRun, typename VisitEdge>
DEVICE void extensions(const Graph& g, const Patterns& q, const Row& row, VisitRun visit_run, VisitEdge visit_edge) {
  const i64 base = row.pattern * q.width;
  const int path_size = q.path_sizes[row.pattern];
  Edges edges;
  for (int place = 0; place < path_size; ++place) {
    const i64 forward = q.forward[base + place];
    if (forward == kNoExtension && (place > 0 || path_size <= 2)) continue;
    edges.find(g, q, row, place);
    if (place == 0) {
      for (int other = 2; other < path_size; ++other) {
        const int type = edges.found[q.paths[base + other]];
        const i64 backward = q.backward[base + other];
        if (backward != kNoExtension && type >= 0) visit_edge(other, backward + type);
      }
    }
    if (forward == kNoExtension) continue;
    const u32 u = row.vertices[q.paths[base + place]];
    for (i64 run = g.runs[u]; run < g.runs[u + 1]; ++run) visit_run(place, run, forward + g.types[run], edges);
  }
}

DEVICE void set_bit(u32* words, u32 bit) {
  const u32 mask = 1u << (bit & 31);
  if (!(load_volatile(words + (bit >> 5)) & mask)) atomicOr(words + (bit >> 5), mask);
}

// The images of the vertices of grown patterns, and how many of them are still wanted.
struct Images {
  int* alive;
  u32* sets;
  int *wanted, *open, *left;
  i64 columns, words;

  // Add an image of vertex y; an extension of a pattern is done when all of its vertices have as many as wanted.
  DEVICE void add(int pattern, i64 extension, int y, u32 vertex) const {
    const int number = *static_cast<volatile int*>(alive + extension);
    if (number < 0) return;
    u32* word = sets + (number * columns + y) * words + (vertex >> 5);
    const u32 bit = 1u << (vertex & 31);
    if (load_volatile(word) & bit || atomicOr(word, bit) & bit) return;
    if (atomicSub(wanted + number * columns + y, 1) != 1 || atomicSub(open + number, 1) != 1) return;
    alive[extension] = -1;
    atomicSub(left, 1);
    atomicSub(left + 1 + pattern, 1);
  }

  DEVICE bool complete() const { return *static_cast<volatile int*>(left) == 0; }
  DEVICE bool complete(int pattern) const { return *static_cast<volatile int*>(left + 1 + pattern) == 0; }
};

#define IMAGES int *alive, u32 *sets, int *wanted, int *open, int *left, i64 image_columns, i64 words
#define IMAGES_OF                                                                                                      \
  const Images images{alive, sets, wanted, open, left, image_columns, words};

DEVICE i64 thread_number() { return static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; }
DEVICE i64 num_threads() { return static_cast<i64>(gridDim.x) * blockDim.x; }

// Add the rows that each extension would have to counts[extension]; in shared memory first, where `local` of them fit it.
extern "C" __global__ void count_extensions(GRAPH, PATTERNS, const u32* rows, i64 num_rows, i64 local, u64* counts,
                                      const u32* stop) {
  ARGUMENTS
  u64* own = reinterpret_cast<u64*>(dynamic_shared);
  for (i64 extension = threadIdx.x; extension < local; extension += blockDim.x) own[extension] = 0;
  __syncthreads();
  u64* to = local ? own : counts;
  for (i64 i = thread_number(); i < num_rows && !load_volatile(stop); i += num_threads()) {
    Row row;
    row.load(q, rows, num_rows, i);
    extensions(
        g, q, row,
        [&](int, i64 run, i64 extension, const Edges& edges) {
          const i64 others = edges.others(g, run, row.size);
          if (others) atomicAdd(to + extension, static_cast<u64>(others));
        },
        [&](int, i64 extension) { atomicAdd(to + extension, u64(1)); });
  }
  __syncthreads();
  for (i64 extension = threadIdx.x; extension < local; extension += blockDim.x) {
    if (own[extension]) atomicAdd(counts + extension, own[extension]);
  }
}

// Set the bit of a row's transaction, images[alive[extension]][word], for every extension that it has.
extern "C" __global__ void mark_groups(GRAPH, PATTERNS, const u32* rows, i64 num_rows, const int* groups,
                                       const int* alive, i64 words, u32* images, const u32* stop) {
  ARGUMENTS
  for (i64 i = thread_number(); i < num_rows && !load_volatile(stop); i += num_threads()) {
    Row row;
    row.load(q, rows, num_rows, i);
    const u32 group = groups[row.vertices[0]];
    extensions(
        g, q, row,
        [&](int, i64 run, i64 extension, const Edges& edges) {
          if (alive[extension] >= 0 && edges.others(g, run, row.size)) set_bit(images + alive[extension] * words, group);
        },
        [&](int, i64 extension) {
          if (alive[extension] >= 0) set_bit(images + alive[extension] * words, group);
        });
  }
}

// Add a row's own vertices for every extension that it has. Note in seen[pattern][place][vertex] the first row that comes
// to a vertex at a place of the path.
extern "C" __global__ void mark_rows(GRAPH, PATTERNS, const u32* rows, i64 num_rows, i64 begin, i64 end, i64 num_vertices,
                                     i64 first_seen, u32* seen, IMAGES, const u32* stop) {
  ARGUMENTS IMAGES_OF
  for (i64 i = begin + thread_number(); i < end && !images.complete() && !load_volatile(stop); i += num_threads()) {
    if (images.complete(static_cast<int>(rows[i] - first[0]))) continue;
    Row row;
    row.load(q, rows, num_rows, i);
    const i64 base = row.pattern * q.width;
    auto mark = [&](i64 extension) {
      for (int y = 0; y < row.size; ++y) images.add(row.pattern, extension, y, row.vertices[y]);
    };
    extensions(
        g, q, row,
        [&](int, i64 run, i64 extension, const Edges& edges) {
          if (alive[extension] >= 0 && edges.others(g, run, row.size)) mark(extension);
        },
        [&](int, i64 extension) { mark(extension); });
    for (int place = 0; place < q.path_sizes[row.pattern]; ++place) {
      if (q.forward[base + place] == kNoExtension) continue;
      const u32 u = row.vertices[q.paths[base + place]];
      u32* at = seen + ((row.pattern - first_seen) * q.width + place) * num_vertices + u;
      if (load_volatile(at) > i) atomicMin(at, static_cast<u32>(i));
    }
  }
}

// Add the new vertices of the first row that comes to a vertex: all of its runs, but for the row's own.
extern "C" __global__ void mark_runs(GRAPH, PATTERNS, const u32* rows, i64 num_rows, i64 num_vertices, i64 num_seen,
                                     const u32* seen, IMAGES, const u32* stop) {
  ARGUMENTS IMAGES_OF
  const int lane = lane_id();
  const i64 rounds = (num_seen + 31) / 32, warps = num_threads() / 32;
  for (i64 round = thread_number() / 32; round < rounds; round += warps) {
    if (stop_asked(stop)) return;
    const i64 own = round * 32 + lane;
    const u32 own_row = own < num_seen ? seen[own] : kNoRow;
    for (u32 left_here = __ballot_sync(kAll, own_row != kNoRow); left_here; left_here &= left_here - 1) {
      const int source = __ffs(left_here) - 1;
      const u32 i = __shfl_sync(kAll, own_row, source);
      const i64 entry = round * 32 + source;
      const u32 u = static_cast<u32>(entry % num_vertices);
      const int place = static_cast<int>(entry / num_vertices % q.width);
      Row row;
      row.load(q, rows, num_rows, i);
      const i64 forward = q.forward[row.pattern * q.width + place];
      for (i64 run = g.runs[u]; run < g.runs[u + 1]; ++run) {
        const i64 extension = forward + g.types[run];
        if (alive[extension] < 0) continue;
        for (i64 at = g.begins[run] + lane; at < g.begins[run + 1]; at += 32) {
          const u32 vertex = g.indices[at];
          if (!row.has(vertex)) images.add(row.pattern, extension, row.size, vertex);
        }
      }
    }
  }
}

// For later rows only the vertices of the first row can be new.
extern "C" __global__ void mark_rest(GRAPH, PATTERNS, const u32* rows, i64 num_rows, i64 begin, i64 end, i64 num_vertices,
                                     i64 first_seen, const u32* seen, IMAGES, const u32* stop) {
  ARGUMENTS IMAGES_OF
  for (i64 i = begin + thread_number(); i < end && !images.complete() && !load_volatile(stop); i += num_threads()) {
    if (images.complete(static_cast<int>(rows[i] - first[0]))) continue;
    Row row;
    row.load(q, rows, num_rows, i);
    const i64 base = row.pattern * q.width;
    for (int place = 0; place < q.path_sizes[row.pattern]; ++place) {
      const i64 forward = q.forward[base + place];
      if (forward == kNoExtension) continue;
      const u32 u = row.vertices[q.paths[base + place]];
      const u32 before = seen[((row.pattern - first_seen) * q.width + place) * num_vertices + u];
      // Rows stop coming when all that is wanted is there; what they come to is not noted then.
      if (before == i || before == kNoRow) continue;
      for (int y = 0; y < row.size; ++y) {
        const u32 vertex = rows[q.columns[base + y] * num_rows + before];
        if (row.has(vertex)) continue;
        const int type = edge_type(g, u, vertex, q.labels[base + y]);
        if (type >= 0) images.add(row.pattern, forward + type, row.size, vertex);
      }
    }
  }
}

// The bits of each set of `words` words; a warp has a set.
extern "C" __global__ void count_bits(const u32* sets, i64 num_sets, i64 words, i64* counts) {
  for (i64 i = thread_number() / 32; i < num_sets; i += num_threads() / 32) {
    i64 bits = 0;
    for (i64 word = lane_id(); word < words; word += 32) bits += __popc(sets[i * words + word]);
    bits = warp_sum(bits);
    if (lane_id() == 0) counts[i] = bits;
  }
}

// How many rows each row grows into.
extern "C" __global__ void count_children(GRAPH, PATTERNS, const u32* rows, i64 num_rows, const int* alive, i64* counts,
                                          const u32* stop) {
  ARGUMENTS
  for (i64 i = thread_number(); i < num_rows && !load_volatile(stop); i += num_threads()) {
    Row row;
    row.load(q, rows, num_rows, i);
    i64 total = 0;
    extensions(
        g, q, row,
        [&](int, i64 run, i64 extension, const Edges& edges) {
          if (alive[extension] >= 0) total += edges.others(g, run, row.size);
        },
        [&](int, i64 extension) { total += alive[extension] >= 0; });
    counts[i] = total;
  }
}

// Write them; a warp has a row.
extern "C" __global__ void write_children(GRAPH, PATTERNS, const u32* rows, i64 num_rows, const int* alive,
                                          const i64* offsets, int* numbers, u32* vertices, const u32* stop) {
  ARGUMENTS
  const int lane = lane_id();
  for (i64 i = thread_number() / 32; i < num_rows; i += num_threads() / 32) {
    if (stop_asked(stop)) return;
    if (offsets[i] == offsets[i + 1]) continue;
    Row row;
    row.load(q, rows, num_rows, i);
    i64 out = offsets[i];
    extensions(
        g, q, row,
        [&](int, i64 run, i64 extension, const Edges&) {
          const int number = alive[extension];
          if (number < 0) return;
          for (i64 from = g.begins[run]; from < g.begins[run + 1]; from += 32) {
            const i64 at = from + lane;
            const u32 vertex = at < g.begins[run + 1] ? g.indices[at] : kNoVertex;
            const bool keep = vertex != kNoVertex && !row.has(vertex);
            const u32 kept = __ballot_sync(kAll, keep);
            if (keep) {
              const i64 to = out + __popc(kept & lanes_before());
              numbers[to] = number;
              vertices[to] = vertex;
            }
            out += __popc(kept);
          }
        },
        [&](int other, i64 extension) {
          const int number = alive[extension];
          if (number < 0) return;
          if (lane == 0) {
            numbers[out] = number;
            vertices[out] = row.vertices[q.paths[row.pattern * q.width + other]];
          }
          ++out;
        });
  }
}
