// Count the cliques of four vertices among candidates by the pairs that are not adjacent, as
// kernels/cpu/kcliques/complement.py does it: inclusion and exclusion over the complement, or one by one where that has
// less to look at.
//
// A lane takes candidates as the largest ones of edges and paths of the complement. Its part of a sum may be negative.
#pragma once
#include "kcliques/tables.cuh"

using u16 = unsigned short;

DEVICE u64 word_below(int i) { return (1ull << i) - 1; }
DEVICE u32 bits_below(int i) { return (1u << (i & 31)) - 1; }

// Sums of the lanes of a warp, which go to a `WideSum` in time.
struct Tally {
  u64* sum;
  i64 total;
  u64 most;  // that the magnitude of `total` of any lane can have; the same for all

  // Make room for what is counted among n <= 2047 candidates: all terms together are less than 4 n^4.
  DEVICE void reserve(int n) {
    const u64 square = static_cast<u64>(n) * n, capacity = 4 * square * square;
    if (most + capacity > 1ull << 62) flush();
    most += capacity;
  }

  DEVICE void flush() {
    WideSum lanes;
    lanes.add_signed(total);
    lanes.add_lanes_to(sum);
    total = 0;
    most = 0;
  }
};

// Whether a complement of n vertices, with a number of edges and paths of two edges, has less to look at than the graph.
DEVICE bool complement_pays(int n, u32 pairs, u32 wedges) {
  const float everything = 0.5f * static_cast<float>(n) * static_cast<float>(n - 1);
  const float edges = everything - static_cast<float>(pairs);
  return edges * edges * edges * static_cast<float>(n - 2) >
         (static_cast<float>(wedges) + 6.0f * static_cast<float>(pairs)) * everything * everything;
}

// The part of the sum that follows from the numbers of edges and of stars of two edges.
DEVICE i64 by_degrees(i64 n, i64 pairs, i64 wedges) {
  const i64 triples = (n * (n - 1) >> 1) * (n - 2) / 3;
  return (triples * (n - 3) >> 2) - pairs * ((n - 2) * (n - 3) >> 1) + wedges * (n - 4) + (pairs * (pairs - 1) >> 1);
}

// A lane's sums over the degrees of the complement: twice the edges, paths of two edges, stars of three edges.
struct Degrees {
  u32 pairs, wedges;
  i64 claws;

  DEVICE void add(i64 degree) {
    pairs += static_cast<u32>(degree);
    wedges += static_cast<u32>(degree * (degree - 1) >> 1);
    claws += degree * (degree - 1) * (degree - 2) / 6;
  }
};

// Candidates in a word. Row i of `apart` has those that candidate i is not adjacent to, without itself.
struct WordRoot {
  u64* apart;    // u64[64]
  u16* degrees;  // u16[64]

  DEVICE i64 terms_of(int v, int n, u64 chosen) const {
    const u64 row = apart[v] & chosen, under = chosen & word_below(v), low = row & under;
    const int own = degrees[v];
    i64 total = 0;
    for (u64 xs = low; xs; xs &= xs - 1) {
      const int x = __ffsll(static_cast<i64>(xs)) - 1;
      const u64 near = apart[x];
      const int common = __popcll(row & near), other = degrees[x];
      total -= (own - 1) * (other - 1) + (common * (common - 1) >> 1);
      for (u64 ys = low & word_below(x); ys; ys &= ys - 1) {
        const int y = __ffsll(static_cast<i64>(ys)) - 1;
        const u64 both = near & under & apart[y];
        total += __popcll(both);
        if (near >> y & 1) total += own + other + degrees[y] - n + __popcll(both & low & word_below(y));
      }
    }
    return total;
  }

  DEVICE i64 one_by_one(int v, u64 chosen) const {
    i64 total = 0;
    const u64 first = chosen & ~apart[v] & word_below(v);
    for (u64 xs = first; xs; xs &= xs - 1) {
      const int x = __ffsll(static_cast<i64>(xs)) - 1;
      const u64 second = first & ~apart[x] & word_below(x);
      for (u64 ys = second; ys; ys &= ys - 1) {
        const int y = __ffsll(static_cast<i64>(ys)) - 1;
        total += __popcll(second & ~apart[y] & word_below(y));
      }
    }
    return total;
  }

  // Count the cliques among the chosen ones, by a warp.
  DEVICE void count(u64 chosen, Tally& tally) const {
    const int lane = lane_id(), n = __popcll(chosen);
    if (n < 4) return;
    tally.reserve(n);
    Degrees sums = {0, 0, 0};
    __syncwarp();
    for (int v = lane; v < 64; v += 32) {
      if (!(chosen >> v & 1)) continue;
      const int degree = __popcll(apart[v] & chosen);
      degrees[v] = static_cast<u16>(degree);
      sums.add(degree);
    }
    __syncwarp();
    const u32 pairs = __reduce_add_sync(kAll, sums.pairs) / 2;
    if (!pairs) {
      if (lane == 0) tally.total += by_degrees(n, 0, 0);
      return;
    }
    const u32 wedges = __reduce_add_sync(kAll, sums.wedges);
    const bool pays = complement_pays(n, pairs, wedges);
    if (pays) tally.total += (lane == 0 ? by_degrees(n, pairs, wedges) : 0) - sums.claws;
    for (int v = lane; v < 64; v += 32)
      if (chosen >> v & 1) tally.total += pays ? terms_of(v, n, chosen) : one_by_one(v, chosen);
  }
};

// Candidates in a bitmap of words of 32 bits.
struct BitmapRoot {
  u32* apart;  // rows of `stride` words
  int stride;

  DEVICE const u32* row(int i) const { return apart + i * stride; }

  DEVICE int degree_of(int v, const u32* chosen, int words) const {
    const u32* own = row(v);
    int degree = 0;
    for (int w = 0; w < words; ++w) degree += __popc(own[w] & chosen[w]);
    return degree;
  }

  // Word w of the neighbours of v in the complement that are chosen and before v.
  DEVICE static u32 before(const u32* own, const u32* chosen, int w, int v) {
    return own[w] & chosen[w] & (w == v >> 5 ? bits_below(v) : kAll);
  }

  DEVICE i64 terms_of(int v, int n, const u32* chosen, int words, const u16* degrees) const {
    const u32* own = row(v);
    const int last = v >> 5, degree = degrees[v];
    if (!degree) return 0;
    i64 total = 0;
    int earlier = 0, under = 0;
    for (int w = 0; w <= last; ++w) {
      under += __popc(chosen[w] & (w == last ? bits_below(v) : kAll));
      for (u32 xs = before(own, chosen, w, v); xs; xs &= xs - 1) {
        const int x = 32 * w + __ffs(static_cast<int>(xs)) - 1;
        const u32* near = row(x);
        const int other = degrees[x];
        int common = 0;
        for (int z = 0; z < words; ++z) common += __popc(own[z] & near[z] & chosen[z]);
        ++earlier;
        total -= (degree - 1) * (other - 1) + (common * (common - 1) >> 1);
        for (int u = 0; common && u <= w; ++u) {
          for (u32 ys = own[u] & before(near, chosen, u, x); ys; ys &= ys - 1) {
            const int y = 32 * u + __ffs(static_cast<int>(ys)) - 1;
            const u32* far = row(y);
            int quads = 0;
#pragma unroll 1
            for (int z = 0; z <= u; ++z) quads += __popc(own[z] & near[z] & before(far, chosen, z, y));
            total += degree + other + degrees[y] - n + quads;
          }
        }
      }
    }
    return total + (earlier * (earlier - 1) >> 1 <= under ? cycles_by_pairs(v, chosen) : cycles_by_ends(v, chosen));
  }

  // Cycles of four edges in the complement, v the largest of their vertices: by the two neighbours of v.
  DEVICE i64 cycles_by_pairs(int v, const u32* chosen) const {
    const u32* own = row(v);
    i64 total = 0;
    for (int w = 0; w <= v >> 5; ++w) {
      for (u32 xs = before(own, chosen, w, v); xs; xs &= xs - 1) {
        const int x = 32 * w + __ffs(static_cast<int>(xs)) - 1;
        const u32* near = row(x);
        for (int u = 0; u <= w; ++u) {
          for (u32 ys = before(own, chosen, u, v) & (u == w ? bits_below(x) : kAll); ys; ys &= ys - 1) {
            const u32* far = row(32 * u + __ffs(static_cast<int>(ys)) - 1);
            int paths = 0;
            for (int z = 0; z <= v >> 5; ++z) paths += __popc(near[z] & before(far, chosen, z, v));
            total += paths;
          }
        }
      }
    }
    return total;
  }

  // The same by the vertex opposite to v.
  DEVICE i64 cycles_by_ends(int v, const u32* chosen) const {
    const u32* own = row(v);
    i64 total = 0;
    for (int w = 0; w <= v >> 5; ++w) {
      for (u32 ends = chosen[w] & (w == v >> 5 ? bits_below(v) : kAll); ends; ends &= ends - 1) {
        const u32* far = row(32 * w + __ffs(static_cast<int>(ends)) - 1);
        int common = 0;
        for (int z = 0; z <= v >> 5; ++z) common += __popc(far[z] & before(own, chosen, z, v));
        total += common * (common - 1) >> 1;
      }
    }
    return total;
  }

  DEVICE i64 one_by_one(int v, const u32* chosen) const {
    const u32* own = row(v);
    i64 total = 0;
    for (int w = 0; w <= v >> 5; ++w) {
      for (u32 xs = chosen[w] & ~own[w] & (w == v >> 5 ? bits_below(v) : kAll); xs; xs &= xs - 1) {
        const int x = 32 * w + __ffs(static_cast<int>(xs)) - 1;
        const u32* near = row(x);
        for (int u = 0; u <= w; ++u) {
          for (u32 ys = chosen[u] & ~own[u] & ~near[u] & (u == w ? bits_below(x) : kAll); ys; ys &= ys - 1) {
            const int y = 32 * u + __ffs(static_cast<int>(ys)) - 1;
            const u32* far = row(y);
            u32 found = __popc(chosen[u] & ~(own[u] | near[u] | far[u]) & bits_below(y));
#pragma unroll 1
            for (int z = 0; z < u; ++z) found += __popc(chosen[z] & ~(own[z] | near[z] | far[z]));
            total += found;
          }
        }
      }
    }
    return total;
  }

  // Count the cliques among n chosen ones, by a warp with a place for the degrees of all.
  DEVICE void count(int n, const u32* chosen, int words, u16* degrees, u32* queue, Tally& tally) const {
    tally.reserve(n);
    Degrees sums = {0, 0, 0};
    for_each_member(chosen, words, queue, [&](int v) {
      const int degree = degree_of(v, chosen, words);
      degrees[v] = static_cast<u16>(degree);
      sums.add(degree);
    });
    const u32 pairs = __reduce_add_sync(kAll, sums.pairs) / 2;
    if (!pairs) {
      if (lane_id() == 0) tally.total += by_degrees(n, 0, 0);
      return;
    }
    const u32 wedges = __reduce_add_sync(kAll, sums.wedges);
    if (complement_pays(n, pairs, wedges)) {
      i64 total = (lane_id() == 0 ? by_degrees(n, pairs, wedges) : 0) - sums.claws;
      for_each_member(chosen, words, queue, [&](int v) { total += terms_of(v, n, chosen, words, degrees); });
      tally.total += total;
    } else {
      i64 total = 0;
      for_each_member(chosen, words, queue, [&](int v) { total += one_by_one(v, chosen); });
      tally.total += total;
    }
  }
};
