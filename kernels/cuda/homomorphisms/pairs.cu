// Count the maps of four vertices beside all pairs of vertices a and b; see longwall.kernels.cpu.homomorphisms.pairs,
// pair_sums and codegree_sums, whose formulas these are. A block for each a, a warp for each b.
//
// Row i of a table says which neighbours of a are adjacent to number i; rows begin at odd words apart, so that lanes
// with a row each read different banks.
#include "common.cuh"

// constexpr int kCodegree, kSymmetric (only pairs with b < a), kCommon (the fewest common neighbours of a pair): of the
// formulas one is compiled.
#include "generated.cuh"

struct Graph {
  const i64* indptr;
  const u32* indices;
};

// What the blocks have of their own: `slots`, `counts` and `tally` are all zero between vertices.
struct Buffers {
  u32 *slots, *counts, *ends, *tally;  // of every vertex; how many common neighbours with the pair it has
  u32* codegrees;                      // of every two neighbours of a: their common neighbours but a
  u64* closed;                 // of every neighbour of a: its walks of three steps to itself
};

// A pair, and its common neighbours C: as bits, and as places in the row of a.
struct Pair {
  const u32 *table, *mask, *both;
  u32* sizes;  // neighbours in C: of the vertices of C, or of all neighbours of a
  int degree, width, common, slot;  // of a; and the place of b there, or -1

  DEVICE const u32* row(int i) const { return table + static_cast<i64>(i) * width; }
  DEVICE int words() const { return (degree + 31) >> 5; }
  DEVICE bool joined(int i, int j) const { return row(i)[j >> 5] >> (j & 31) & 1; }
  DEVICE bool in_common(int i) const { return mask[i >> 5] >> (i & 31) & 1; }
};

DEVICE i64 bits_of(const u32* row, int words) {
  i64 found = 0;
  for (int w = 0; w < words; ++w) found += __popc(row[w]);
  return found;
}

DEVICE i64 bits_of(const u32* row, const u32* other, int words) {
  i64 found = 0;
  for (int w = 0; w < words; ++w) found += __popc(row[w] & other[w]);
  return found;
}

DEVICE i64 bits_of(const u32* row, const u32* other, const u32* third, int words) {
  i64 found = 0;
  for (int w = 0; w < words; ++w) found += __popc(row[w] & other[w] & third[w]);
  return found;
}

// The sum of the sizes of what is adjacent to x.
DEVICE i64 around(const Pair& pair, int x) {
  i64 total = 0;
  for (int w = 0; w < pair.words(); ++w) {
    for (u32 bits = pair.row(x)[w]; bits; bits &= bits - 1) total += pair.sizes[(w << 5) + __ffs(bits) - 1];
  }
  return total;
}

// The four are common neighbours; each lane returns its part.
DEVICE i64 common_sum(const Pair& pair) {
  const int words = pair.words(), c = pair.common;
  i64 total = 0;
  for (int k = lane_id(); k < c; k += 32) {
    const i64 size = bits_of(pair.row(pair.both[k]), pair.mask, words);
    pair.sizes[k] = static_cast<u32>(size);
    total += size * (size - 1) * (c - 3);
  }
  __syncwarp();
  if (kCodegree == CHERRY) return total;
  total = 0;
  for (i64 place = lane_id(); place < static_cast<i64>(c) * c; place += 32) {
    const int k = static_cast<int>(place / c), m = static_cast<int>(place % c);
    if (m >= k) continue;
    const int x = pair.both[k], y = pair.both[m];
    const i64 first = pair.sizes[k], second = pair.sizes[m];
    if (first < 2 || second < 2 || (kCodegree != CYCLE && !pair.joined(x, y))) continue;
    const i64 seen = bits_of(pair.row(x), pair.row(y), pair.mask, words);
    if (kCodegree == CYCLE) {
      total += 2 * seen * (seen - 1);
    } else if (kCodegree == PATH) {
      total += 2 * ((first - 1) * (second - 1) - seen);
    } else if (kCodegree == PAW) {
      total += seen * (first + second - 4);
    } else {
      total += 2 * seen * (c - 3);
    }
  }
  return total;
}

DEVICE i64 zigzags(const Pair& pair) {
  const int words = pair.words(), c = pair.common;
  const bool adjacent = pair.slot >= 0;
  i64 total = 0;
  for (int k = lane_id(); k < c; k += 32) {
    const int x = pair.both[k];
    const i64 size = pair.sizes[x];
    total += size * (around(pair, x) - bits_of(pair.row(x), words) + adjacent) - size * (size - 1);
  }
  for (i64 place = lane_id(); place < static_cast<i64>(c) * c; place += 32) {
    const int x = pair.both[place / c], y = pair.both[place % c];
    if (y >= x || !pair.joined(x, y)) continue;
    total -= 2 * (bits_of(pair.row(x), pair.row(y), words) - adjacent);
  }
  return total;
}

DEVICE i64 tails(const Pair& pair) {
  const int words = pair.words();
  i64 total = 0;
  for (int x = lane_id(); x < pair.degree; x += 32) {
    const i64 size = pair.sizes[x];
    if (size < 3) continue;
    i64 triangles = 0;
    for (int w = 0; w < words; ++w) {
      for (u32 bits = pair.row(x)[w] & pair.mask[w]; bits; bits &= bits - 1) {
        triangles += bits_of(pair.row(x), pair.row((w << 5) + __ffs(bits) - 1), pair.mask, words);
      }
    }
    total += triangles * (size - 2);
  }
  return total;
}

// Walks p - q - r - s from C to C, less those with p = s, q = s or p = r; none goes by way of b.
DEVICE i64 path_ends(const Pair& pair, const u64* closed) {
  const bool adjacent = pair.slot >= 0;
  i64 total = 0;
  for (int x = lane_id(); x < pair.degree; x += 32) {
    const i64 size = pair.sizes[x];
    if (size) total += size * around(pair, x);
    if (pair.in_common(x)) {
      total -= static_cast<i64>(closed[x]) - (adjacent ? 2 * size : 0);
      total -= 2 * size * (bits_of(pair.row(x), pair.words()) - adjacent) - size;
    }
  }
  return total;
}

// Some of the four are adjacent to a alone; each lane returns its part.
DEVICE i64 neighbour_sum(const Pair& pair, const u64* closed) {
  const int words = pair.words(), c = pair.common;
  i64 total = 0;
  for (int x = lane_id(); x < pair.degree; x += 32) {
    const i64 size = x == pair.slot ? 0 : bits_of(pair.row(x), pair.mask, words);
    pair.sizes[x] = static_cast<u32>(size);
    if (kCodegree == FORK) total += size * (size - 1) * (c - 2 - pair.in_common(x));
  }
  __syncwarp();
  if (kCodegree == FORK) return total;
  if (kCodegree == ENDS) return path_ends(pair, closed);
  return kCodegree == ZIGZAG ? zigzags(pair) : tails(pair);
}

// Find the common neighbours of a and b: they are bits of `mask`, and places in `both`. Returns how many.
DEVICE int find_common(const Graph& g, i64 own, int degree, u32 b, u32* mask, u32* both) {
  const i64 begin = g.indptr[b];
  const int length = static_cast<int>(g.indptr[b + 1] - begin), lane = lane_id();
  int found = 0;
  for (int base = 0; base < degree; base += 32) {
    const int i = base + lane;
    bool in = false;
    if (i < degree) {
      const u32 y = g.indices[own + i];
      const int at = lower_bound(g.indices + begin, length, y);
      in = at < length && g.indices[begin + at] == y;
    }
    const u32 bits = __ballot_sync(kAll, in);
    if (lane == 0) mask[base >> 5] = bits;
    if (in) both[found + __popc(bits & lanes_before())] = i;
    found += __popc(bits);
  }
  __syncwarp();
  return found;
}

// Make the table of a, and list the vertices b with enough common neighbours in buffers.ends; control[1] says how many.
DEVICE void list_pairs(const Graph& g, i64 a, const Buffers& buffers, int width, u32* table) {
  const i64 own = g.indptr[a];
  const int degree = static_cast<int>(g.indptr[a + 1] - own), warp = warp_in_block(), warps = blockDim.x >> 5;
  for (i64 w = threadIdx.x; w < static_cast<i64>(degree) * width; w += blockDim.x) table[w] = 0;
  for (int i = threadIdx.x; i < degree; i += blockDim.x) buffers.slots[g.indices[own + i]] = i + 1;
  __syncthreads();
  for (int i = warp; i < degree; i += warps) {
    const u32 y = g.indices[own + i];
    for (i64 at = g.indptr[y] + lane_id(); at < g.indptr[y + 1]; at += 32) {
      const u32 z = g.indices[at], slot = buffers.slots[z];
      if (slot) atomicOr(&table[static_cast<i64>(i) * width + ((slot - 1) >> 5)], 1u << ((slot - 1) & 31));
      if ((z < a || (z > a && !kSymmetric)) && atomicAdd(&buffers.counts[z], 1u) + 1 == kCommon) {
        buffers.ends[atomicAdd(&dynamic_shared[1], 1u)] = z;
      }
    }
  }
  __syncthreads();
}

DEVICE void clear(const Graph& g, i64 a, const Buffers& buffers) {
  const i64 own = g.indptr[a];
  const int degree = static_cast<int>(g.indptr[a + 1] - own), warp = warp_in_block(), warps = blockDim.x >> 5;
  for (int i = warp; i < degree; i += warps) {
    const u32 y = g.indices[own + i];
    for (i64 at = g.indptr[y] + lane_id(); at < g.indptr[y + 1]; at += 32) buffers.counts[g.indices[at]] = 0;
    if (lane_id() == 0) buffers.slots[y] = 0;
  }
}

// Add the pairs of a's neighbours that are common to a and b to the codegrees.
DEVICE void add_codegrees(const u32* both, int common, int degree, u32* codegrees) {
  for (i64 place = lane_id(); place < static_cast<i64>(common) * common; place += 32) {
    const i64 x = both[place / common], y = both[place % common];
    if (x != y) atomicAdd(&codegrees[x * degree + y], 1u);
  }
}

// A vertex that two common neighbours of a pair have, and a third common neighbour.
DEVICE i64 crosses(const u32* both, int common, int degree, const u32* codegrees) {
  i64 total = 0;
  for (i64 place = lane_id(); place < static_cast<i64>(common) * common; place += 32) {
    const i64 x = both[place / common], y = both[place % common];
    if (x != y) total += static_cast<i64>(codegrees[x * degree + y]) - 1;
  }
  return total * (common - 2);
}

// Take the next of `number` pairs; every 64th call reads the stop flag, since the pairs of a hub take long. Once it is
// set, no pairs are left.
DEVICE u32 next_pair(u32 number, const u32* stop) {
  const u32 turn = take(&dynamic_shared[2], 1);
  if ((turn & 63) != 0 || turn >= number || !stop_asked(stop)) return turn;
  if (lane_id() == 0) atomicMax(&dynamic_shared[2], number);
  return number;
}

// Walks of two steps from a neighbour x to both ends y and z of an edge between neighbours; a warp for each x.
DEVICE void splits(int degree, int width, const u32* table, const u32* codegrees, const u32* stop, WideSum& sum) {
  const int words = (degree + 31) >> 5, warps = blockDim.x >> 5;
  for (int x = warp_in_block(); x < degree && !stop_asked(stop); x += warps) {
    const u32* near = table + static_cast<i64>(x) * width;
    const u32* own = codegrees + static_cast<i64>(x) * degree;
    for (int y = lane_id(); y < degree; y += 32) {
      if (y == x) continue;
      const i64 to_y = own[y], beside_y = near[y >> 5] >> (y & 31) & 1;
      i64 part = 0;
      for (int w = 0; w < words; ++w) {
        for (u32 bits = table[static_cast<i64>(y) * width + w]; bits; bits &= bits - 1) {
          const int bit = __ffs(bits) - 1, z = (w << 5) + bit;
          if (z == x) continue;
          part += (static_cast<i64>(own[z]) - beside_y) * (to_y - (near[w] >> bit & 1));
        }
      }
      sum.add_signed(part);
    }
  }
}

// What needs the codegrees of a's neighbours: the warps count these first.
DEVICE void codegree_sums(const Graph& g, i64 own, int degree, int width, const Buffers& buffers,
                          u32* both, u32* mask, const u32* table, const u32* stop, WideSum& sum) {
  const u32 number = dynamic_shared[1];
  for (i64 i = threadIdx.x; i < static_cast<i64>(degree) * degree; i += blockDim.x) buffers.codegrees[i] = 0;
  __syncthreads();
  for (;;) {
    const u32 turn = next_pair(number, stop);
    if (turn >= number) break;
    const int common = find_common(g, own, degree, buffers.ends[turn], mask, both);
    add_codegrees(both, common, degree, buffers.codegrees);
    __syncwarp();
  }
  __syncthreads();
  if (kCodegree == SPLIT) {
    splits(degree, width, table, buffers.codegrees, stop, sum);
    return;
  }
  for (u32 turn = warp_in_block(); turn < number && !stop_asked(stop); turn += blockDim.x >> 5) {
    const int common = find_common(g, own, degree, buffers.ends[turn], mask, both);
    sum.add_signed(crosses(both, common, degree, buffers.codegrees));
    __syncwarp();
  }
}

// Third vertices below b for every b, by the whole block: from g to g + 1 common neighbours there are 3 g (g - 1) more
// ordered triples of these. Warps clear what they have counted.
DEVICE void stars(const Graph& g, i64 own, int degree, const Buffers& buffers, u32 least, u32* both, u32* mask,
                  const u32* stop, WideSum& sum) {
  const int warp = warp_in_block(), warps = blockDim.x >> 5;
  for (u32 turn = 0; turn < dynamic_shared[1]; ++turn) {
    const u32 b = buffers.ends[turn];
    const int common = find_common(g, own, degree, b, mask, both);  // by every warp for itself
    for (int pass = 0; pass < 2; ++pass) {
      if (pass && threadIdx.x == 0 && load_volatile(stop)) dynamic_shared[1] = 0;  // read behind the next barrier
      for (int k = warp; k < common; k += warps) {
        const u32 y = g.indices[own + both[k]];
        for (i64 at = g.indptr[y] + lane_id(); at < g.indptr[y + 1]; at += 32) {
          const u32 x = g.indices[at];
          if (x >= b) break;  // rows ascend
          if (pass) {
            buffers.tally[x] = 0;
          } else if (buffers.counts[x] >= least) {
            const i64 before = atomicAdd(&buffers.tally[x], 1u);
            sum.add_signed(3 * before * (before - 1));
          }
        }
        __syncwarp();
      }
      __syncthreads();
    }
  }
}

// Count the maps of a, with a table that has room for it, and vectors for each warp; `sum` is the lane's.
DEVICE void count_at(const Graph& g, i64 a, const Buffers& buffers, u32* vectors, i64 longest,
                     u32* table, const u32* stop, WideSum& sum) {
  const i64 own = g.indptr[a];
  const int degree = static_cast<int>(g.indptr[a + 1] - own), warp = warp_in_block(), warps = blockDim.x >> 5;
  const int width = (degree + 31) >> 5 | 1, words = (degree + 31) >> 5;
  list_pairs(g, a, buffers, width, table);
  const u32 number = dynamic_shared[1];
  if (number && kCodegree == ENDS) {
    for (int i = warp; i < degree && !stop_asked(stop); i += warps) {
      const u32* row = table + static_cast<i64>(i) * width;
      i64 walks = 0;
      for (int j = lane_id(); j < degree; j += 32) {
        if (row[j >> 5] >> (j & 31) & 1) walks += bits_of(row, table + static_cast<i64>(j) * width, words);
      }
      walks = warp_sum(walks);
      if (lane_id() == 0) buffers.closed[i] = walks;
    }
    __syncthreads();
  }
  u32 *both = vectors + warp * 3 * longest, *sizes = both + longest, *mask = sizes + longest;
  const bool by_pairs = kCodegree < STAR;
  if (number && kCodegree == STAR) stars(g, own, degree, buffers, kCommon, both, mask, stop, sum);
  if (number && kCodegree > STAR) {
    codegree_sums(g, own, degree, width, buffers, both, mask, table, stop, sum);
  }
  while (by_pairs) {
    const u32 turn = next_pair(number, stop);
    if (turn >= number) break;
    const u32 b = buffers.ends[turn];
    const int common = find_common(g, own, degree, b, mask, both);
    const Pair pair{table, mask, both, sizes, degree, width, common, static_cast<int>(buffers.slots[b]) - 1};
    const i64 part =
        kSymmetric ? common_sum(pair) : neighbour_sum(pair, buffers.closed);
    sum.add_signed(part);
    __syncwarp();
  }
  __syncthreads();
  clear(g, a, buffers);
}

// Those of the vertices first to last - 1. ends: u32[blocks][arrays][num_vertices], zeros; four arrays for third
// vertices, else three; closed: u64[blocks][longest] or u64[blocks]; vectors: u32[blocks][warps][3][longest], for the
// most neighbours; codegrees: u32[blocks][square]; store: u32[blocks][store_words], for tables that have no room in the
// `words` of shared memory.
extern "C" __global__ void __launch_bounds__(256)
    count_pairs(const i64* indptr, const u32* indices, i64 num_vertices, i64 first, i64 last, u32* ends, i64 arrays, u64* closed, i64 closed_longest, u32* vectors, i64 longest,
                u32* codegrees, i64 square, i64 words, u32* store, i64 store_words, u32* next, const u32* stop,
                u64* result) {
  const Graph g{indptr, indices};
  u32* own_ends = ends + static_cast<i64>(blockIdx.x) * arrays * num_vertices;
  const Buffers buffers{own_ends,
                        own_ends + num_vertices,
                        own_ends + 2 * num_vertices,
                        own_ends + (arrays - 1) * num_vertices,
                        codegrees + blockIdx.x * square,
                        closed + blockIdx.x * closed_longest};
  u32* own_vectors = vectors + static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) * 3 * longest;
  WideSum sum;
  for (;;) {
    __syncthreads();
    if (threadIdx.x == 0) {
      dynamic_shared[0] = load_volatile(stop) ? kNoVertex : atomicAdd(next, 1u);
      dynamic_shared[1] = dynamic_shared[2] = 0;
    }
    __syncthreads();
    const i64 a = first + dynamic_shared[0];
    if (a >= last) break;
    const i64 degree = indptr[a + 1] - indptr[a];
    if (degree < kCommon) continue;
    // The same code twice, so that the compiler knows which of the two memories it reads.
    if (degree * ((degree + 31) >> 5 | 1) <= words) {
      count_at(g, a, buffers, own_vectors, longest, dynamic_shared + 4, stop, sum);
    } else {
      count_at(g, a, buffers, own_vectors, longest, store + blockIdx.x * store_words, stop, sum);
    }
  }
  sum.add_lanes_to(result);
}
