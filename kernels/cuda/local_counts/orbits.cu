// Homomorphisms of graphlets of 3 to 5 vertices that send a vertex to v, for every vertex v of a graph; see
// longwall.kernels.cpu.local_counts.orbits for what is summed. A block for each vertex x: its warps share out the
// middles of the wedges, or the lists of edges between neighbours; where a table is made for one neighbour a, the block
// goes on to the next one together. Of vertices with the same neighbours only the first one is looked at. With residues
// each product is reduced, and each sum is of fewer than 2^33 residues, or of numbers of distinct arcs.
#include "common.cuh"
#include "generated.cuh"

struct Shared {
  u32 vertex, number, stopped, unused;
  u64 sum;
};

struct Around {
  const i64* indptr;
  const u32* indices;
  const u32* triangles;
  u64* counts;
  u64 prime;  // what numbers are modulo, where they are residues
  i64 num_vertices;
  i64 x, begin;
  u64 twins;  // vertices with the neighbours of x
  int degree;
  u64* diamonds;  // by vertex y: E(x, y)
  i64* near;      // by neighbour: where its list begins
  u32* wedges;    // by vertex y: W(x, y)
  u32* marks;     // by vertex: its number among the neighbours, from 1
  u32* seen;      // by vertex y: the triangles of the arc from one neighbour, and 1
  u32* reached;   // the vertices y with wedges
  u32* pairs;     // by neighbour: its common neighbours with another one
  u32* slots;     // by neighbour: whether it is in the list of another one, and where
  u32* inner;     // the lists: of every neighbour, its neighbours among those of x
  u32* inner_triangles;
  u32* bits;
  Shared* shared;

  DEVICE i64 row(u32 v) const { return indptr[v]; }
  DEVICE i64 row_end(u32 v) const { return indptr[v + 1]; }
  DEVICE u64 degree_of(u32 v) const { return static_cast<u64>(indptr[v + 1] - indptr[v]); }
  DEVICE u32 neighbour(int a) const { return indices[begin + a]; }
  DEVICE u64 triangles_at(int a) const { return triangles[begin + a]; }

  // A number modulo 2^64 or, with residues, the prime.
  DEVICE u64 reduced(u64 number) const {
    if constexpr (kResidues) {
      return number % prime;
    } else {
      return number;
    }
  }

  // A product of two numbers that are below 2^32 with residues.
  DEVICE u64 times(u64 a, u64 b) const { return reduced(a * b); }

  // Add a number of one thread to the homomorphisms of a vertex.
  DEVICE void add(int row, i64 vertex, u64 number) const {
    if (!number) return;
    u64* count = &counts[row * num_vertices + vertex];
    if constexpr (kResidues) {
      number = reduced(number);
      u64 found = *count, before;
      do {
        before = found;
        found = atomicCAS(count, before, reduced(before + number));
      } while (found != before);
    } else {
      atomicAdd(count, number);
    }
  }

  // The same for a neighbour of x, for x and its twins.
  DEVICE void add_twins(int row, i64 vertex, u64 number) const { add(row, vertex, times(twins, reduced(number))); }

  // The same for x, with the numbers of all lanes.
  DEVICE void sum(int row, u64 number) const {
    number = warp_sum(reduced(number));
    if (lane_id() == 0) add(row, x, number);
  }
};

DEVICE int warps_in_block() { return static_cast<int>(blockDim.x >> 5); }

DEVICE void walk_wedges(const Around& g) {
  for (int a = warp_in_block(); a < g.degree; a += warps_in_block()) {
    const u32 p = g.neighbour(a);
    if (lane_id() == 0) g.marks[p] = static_cast<u32>(a + 1);
    for (i64 i = g.row(p) + lane_id(); i < g.row_end(p); i += 32) {
      const u32 y = g.indices[i];
      if (atomicAdd(&g.wedges[y], 1u) == 0) g.reached[atomicAdd(&g.shared->number, 1u)] = y;
    }
  }
  // Where the list of each neighbour begins: it has as many edges as the arc has triangles.
  if (warp_in_block() == 0) {
    i64 before = 0;
    for (int base = 0; base < g.degree; base += 32) {
      const int a = base + lane_id();
      i64 size = a < g.degree ? static_cast<i64>(g.triangles_at(a)) : 0;
      for (int distance = 1; distance < 32; distance *= 2) {
        const i64 left = __shfl_up_sync(kAll, size, distance);
        if (lane_id() >= distance) size += left;
      }
      if (a < g.degree) g.near[a + 1] = before + size;
      before += __shfl_sync(kAll, size, 31);
    }
    if (lane_id() == 0) g.near[0] = 0;
  }
  __syncthreads();
}

DEVICE void add_cycles(const Around& g) {
  u64 squares = 0, weighed = 0, cubes = 0, fives = 0;
  for (u32 i = warp_in_block(); i < g.shared->number; i += warps_in_block()) {
    const u32 y = g.reached[i];
    const u64 w = g.wedges[y];
    if (lane_id() == 0) {
      const u64 square = g.times(w, w);
      squares += square;
      weighed += g.times(square, g.degree_of(y));
      cubes += g.times(square, w);
    }
    u64 found = 0;
    for (i64 j = g.row(y) + lane_id(); j < g.row_end(y); j += 32) found += g.wedges[g.indices[j]];
    fives += g.times(w, g.reduced(found));
  }
  g.sum(k8, squares);
  g.sum(k36, weighed);
  g.sum(k50, cubes);
  g.sum(k34, fives);
}

DEVICE void add_wedges(const Around& g) {
  const int lane = lane_id();
  u64 s3 = 0, s10 = 0, s32 = 0, s29 = 0, s43 = 0, s37 = 0, s51 = 0, s53 = 0;
  for (int a = warp_in_block(); a < g.degree; a += warps_in_block()) {
    const u32 p = g.neighbour(a);
    const u64 t = g.triangles_at(a), degree = g.degree_of(p);
    u64 cycles = 0, squares = 0;
    i64 at = g.near[a];
    for (i64 base = g.row(p); base < g.row_end(p); base += 32) {
      const i64 i = base + lane;
      u32 mark = 0;
      if (i < g.row_end(p)) {
        const u32 y = g.indices[i];
        const u64 w = g.wedges[y], beyond = g.triangles[i];
        cycles += w;
        squares += g.times(w, w);
        s51 += g.times(beyond, w);
        s29 += g.times(t, g.degree_of(y));
        s43 += g.times(t, beyond);
        mark = g.marks[y];
      }
      const u32 inside = __ballot_sync(kAll, mark != 0);
      if (mark) {
        const i64 place = at + __popc(inside & lanes_before());
        g.inner[place] = mark - 1;
        g.inner_triangles[place] = g.triangles[i];
      }
      at += __popc(inside);
    }
    cycles = g.reduced(__shfl_sync(kAll, warp_sum(cycles), 0));
    squares = warp_sum(g.reduced(squares));
    __syncwarp();
    for (i64 i = g.near[a] + lane; i < at; i += 32) g.add_twins(k52, g.neighbour(g.inner[i]), cycles);
    if (lane == 0) {
      g.add_twins(k49, p, squares);
      s3 += t;
      s10 += g.times(t, degree);
      s32 += g.times(g.times(t, degree), degree);
      s37 += g.times(degree, cycles);
      s53 += g.times(cycles, t);
    }
  }
  g.sum(k3, s3);
  g.sum(k10, s10);
  g.sum(k32, s32);
  g.sum(k29, s29);
  g.sum(k43, s43);
  g.sum(k37, s37);
  g.sum(k51, s51);
  g.sum(k53, s53);
  __syncthreads();
}

DEVICE void add_triangles(const Around& g) {
  u64 s12 = 0, s13 = 0, s25 = 0, s40 = 0, s41 = 0, s48 = 0, s54 = 0, s55 = 0, s60 = 0, s61 = 0;
  for (int a = warp_in_block(); a < g.degree; a += warps_in_block()) {
    const u64 t = g.triangles_at(a), degree = g.degree_of(g.neighbour(a));
    if (lane_id() == 0) {
      const u64 square = g.times(t, t);
      s13 += square;
      s41 += g.times(square, degree);
      s55 += g.times(square, t);
    }
    for (i64 i = g.near[a] + lane_id(); i < g.near[a + 1]; i += 32) {
      const int b = static_cast<int>(g.inner[i]);
      const u64 beyond = g.inner_triangles[i], other = g.degree_of(g.neighbour(b));
      s12 += beyond;
      s25 += g.times(degree, other);
      s40 += g.times(beyond, degree);
      s48 += g.times(t, other);
      s54 += g.times(beyond, beyond);
      s60 += g.times(t, beyond);
      s61 += g.times(t, g.triangles_at(b));
    }
  }
  g.sum(k12, s12);
  g.sum(k13, s13);
  g.sum(k25, s25);
  g.sum(k40, s40);
  g.sum(k41, s41);
  g.sum(k48, s48);
  g.sum(k54, s54);
  g.sum(k55, s55);
  g.sum(k60, s60);
  g.sum(k61, s61);
}

// Whether the host asked to stop: the same for the block, which must have waited since the last call.
DEVICE void look_at_stop(const Around& g, const u32* stop) {
  if (threadIdx.x == 0) g.shared->stopped = load_volatile(stop);
}

DEVICE void add_inner_wedges(const Around& g, const u32* stop) {
  const int lane = lane_id();
  u64 s14 = 0, s57 = 0, s66 = 0, s67 = 0, s69 = 0, s71 = 0;
  for (int a = 0; a < g.degree; ++a) {
    const i64 begin = g.near[a], end = g.near[a + 1];
    if (begin == end) continue;
    const u32 p = g.neighbour(a);
    if (threadIdx.x == 0) g.shared->sum = 0;
    look_at_stop(g, stop);
    for (i64 i = begin + warp_in_block(); i < end; i += warps_in_block()) {
      const u32 b = g.inner[i];
      if (lane == 0) g.slots[b] = 1;
      for (i64 j = g.near[b] + lane; j < g.near[b + 1]; j += 32) atomicAdd(&g.pairs[g.inner[j]], 1u);
    }
    __syncthreads();
    if (g.shared->stopped) return;
    u64 own = 0;
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
      const u64 z = g.pairs[g.inner[i]];
      own += z;
      s66 += g.times(z, g.inner_triangles[i]);
      s71 += g.times(z, z);
    }
    s14 += g.reduced(own);
    s57 += g.times(g.reduced(own), g.degree_of(p));
    s67 += g.times(g.reduced(own), g.triangles_at(a));
    own = warp_sum(own);
    if (lane == 0 && own) atomicAdd(&g.shared->sum, own);
    __syncthreads();
    const u64 cliques = g.shared->sum;
    if (cliques) {
      for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) g.add_twins(k65, g.neighbour(g.inner[i]), cliques);
      // Two cliques of 4 vertices that share the triangle of x, a and b < a, for their last vertex.
      for (i64 i = begin + warp_in_block(); i < end; i += warps_in_block()) {
        const u32 b = g.inner[i];
        const u64 z = 2 * static_cast<u64>(g.pairs[b]);
        if (static_cast<int>(b) >= a) break;
        if (!z) continue;
        for (i64 j = g.near[b] + lane; j < g.near[b + 1]; j += 32) {
          if (g.slots[g.inner[j]]) g.add_twins(k70, g.neighbour(g.inner[j]), z);
        }
      }
    }
    __syncthreads();
    u64 squares = 0;
    for (int b = threadIdx.x; b < g.degree; b += blockDim.x) {
      const u64 z = g.pairs[b];
      squares += g.times(z, z);
      g.pairs[b] = 0;
      g.slots[b] = 0;
    }
    squares = g.reduced(squares);
    s69 += squares;
    squares = warp_sum(squares);
    if (lane == 0) g.add_twins(k68, p, squares);
    __syncthreads();
  }
  g.sum(k14, s14);
  g.sum(k57, s57);
  g.sum(k66, s66);
  g.sum(k67, s67);
  g.sum(k69, s69);
  g.sum(k71, s71);
}

DEVICE void add_five_cliques(const Around& g) {
  const int lane = lane_id();
  __syncthreads();  // all have read whether to stop
  u64 found = 0;
  for (int a = 0; a < g.degree; ++a) {
    const u32* list = g.inner + g.near[a];
    const int size = lower_bound(list, static_cast<int>(g.near[a + 1] - g.near[a]), static_cast<u32>(a));
    if (size < 3) continue;
    const int words = (size + 31) >> 5;
    for (int i = threadIdx.x; i < size; i += blockDim.x) g.slots[list[i]] = static_cast<u32>(i + 1);
    for (int i = threadIdx.x; i < size * words; i += blockDim.x) g.bits[i] = 0;
    __syncthreads();
    for (int i = warp_in_block(); i < size; i += warps_in_block()) {
      const u32 b = list[i];
      for (i64 j = g.near[b] + lane; j < g.near[b + 1]; j += 32) {
        const u32 c = g.inner[j];
        const u32 slot = g.slots[c];
        if (c < b && slot) atomicOr(&g.bits[i * words + ((slot - 1) >> 5)], 1u << ((slot - 1) & 31));
      }
    }
    __syncthreads();
    for (int i = warp_in_block(); i < size; i += warps_in_block()) {
      const u32 b = list[i];
      for (i64 j = g.near[b] + lane; j < g.near[b + 1]; j += 32) {
        const u32 c = g.inner[j];
        const u32 slot = g.slots[c];
        if (c >= b || !slot) continue;
        const u32* row = g.bits + i * words;
        const u32* other = g.bits + (slot - 1) * words;
        for (u32 w = 0; w <= (slot - 1) >> 5; ++w) found += __popc(row[w] & other[w]);
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += blockDim.x) g.slots[list[i]] = 0;
    __syncthreads();
  }
  g.sum(k72, 24 * g.reduced(found));
}

DEVICE void add_diamonds(const Around& g, const u32* stop) {
  const int lane = lane_id();
  u64 ends = 0;
  for (int a = 0; a < g.degree; ++a) {
    const i64 begin = g.near[a], end = g.near[a + 1];
    if (begin == end || static_cast<int>(g.inner[end - 1]) < a) continue;
    const u32 p = g.neighbour(a);
    for (i64 i = g.row(p) + threadIdx.x; i < g.row_end(p); i += blockDim.x) g.seen[g.indices[i]] = g.triangles[i] + 1;
    look_at_stop(g, stop);
    __syncthreads();
    if (g.shared->stopped) return;
    for (i64 k = begin + warp_in_block(); k < end; k += warps_in_block()) {
      if (static_cast<int>(g.inner[k]) < a) continue;
      const u32 q = g.neighbour(g.inner[k]);
      u64 both = 0, roofs = 0;
      for (i64 i = g.row(q) + lane; i < g.row_end(q); i += 32) {
        const u32 y = g.indices[i];
        const u32 t = g.seen[y];
        if (!t) continue;
        atomicAdd(&g.diamonds[y], u64(2));
        both += g.wedges[y];
        roofs += static_cast<u64>(t) - 1 + g.triangles[i];
      }
      ends += g.reduced(roofs);
      both = warp_sum(both);
      if (lane == 0) {
        g.add_twins(k64, q, both);
        g.add_twins(k64, p, both);
      }
    }
    __syncthreads();
    for (i64 i = g.row(p) + threadIdx.x; i < g.row_end(p); i += blockDim.x) g.seen[g.indices[i]] = 0;
    __syncthreads();
  }
  g.sum(k59, ends);
}

// What E is for, and clear the tables.
DEVICE void finish(const Around& g) {
  u64 weighed = 0, products = 0;
  for (u32 i = threadIdx.x; i < g.shared->number; i += blockDim.x) {
    const u32 y = g.reached[i];
    const u64 edges = g.reduced(g.diamonds[y]);
    weighed += g.times(edges, g.degree_of(y));
    products += g.times(edges, g.wedges[y]);
  }
  g.sum(k46, weighed);
  g.sum(k63, products);
  for (int a = warp_in_block(); a < g.degree; a += warps_in_block()) {
    const u32 p = g.neighbour(a);
    u64 found = 0;
    for (i64 i = g.row(p) + lane_id(); i < g.row_end(p); i += 32) found += g.reduced(g.diamonds[g.indices[i]]);
    found = warp_sum(found);
    if (lane_id() == 0) {
      g.add_twins(k62, p, found);
      g.marks[p] = 0;
    }
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < g.shared->number; i += blockDim.x) {
    g.wedges[g.reached[i]] = 0;
    g.diamonds[g.reached[i]] = 0;
  }
  __syncthreads();
}

extern "C" __global__ void __launch_bounds__(128)
    add_orbit_homomorphisms(const i64* indptr, const u32* indices, const u32* triangles, const u32* twins, i64 num_vertices,
                            i64 max_degree, i64 max_out_degree, i64 most_triangles, i64 first, i64 last, i64* long_words,
                            i64 num_long, u32* words, i64 num_words, u32* next, const u32* stop, u64 prime,
                            u64* counts) {
  Around g;
  g.indptr = indptr;
  g.indices = indices;
  g.triangles = triangles;
  g.counts = counts;
  g.prime = prime;
  g.num_vertices = num_vertices;
  g.near = long_words + blockIdx.x * num_long;
  g.diamonds = reinterpret_cast<u64*>(g.near + max_degree + 1);
  g.wedges = words + blockIdx.x * num_words;
  g.marks = g.wedges + num_vertices;
  g.seen = g.marks + num_vertices;
  g.reached = g.seen + num_vertices;
  g.pairs = g.reached + num_vertices;
  g.slots = g.pairs + max_degree;
  g.inner = g.slots + max_degree;
  g.inner_triangles = g.inner + most_triangles;
  g.bits = g.inner_triangles + most_triangles;
  g.shared = reinterpret_cast<Shared*>(dynamic_shared);
  for (;;) {
    if (threadIdx.x == 0) {
      g.shared->vertex = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
      g.shared->number = 0;
      g.shared->stopped = 0;
    }
    __syncthreads();
    const i64 x = first + g.shared->vertex;
    if (g.shared->vertex == kNoVertex || x >= last) return;
    g.x = x;
    g.twins = twins[x];
    if (!g.twins) {
      __syncthreads();  // all have read which vertex it was
      continue;
    }
    g.begin = indptr[x];
    g.degree = static_cast<int>(indptr[x + 1] - g.begin);
    walk_wedges(g);
    add_cycles(g);
    add_wedges(g);
    add_triangles(g);
    add_inner_wedges(g, stop);
    if (g.shared->stopped) return;
    add_five_cliques(g);
    add_diamonds(g, stop);
    if (g.shared->stopped) return;
    finish(g);
  }
}
