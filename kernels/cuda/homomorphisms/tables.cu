// Tables over vertices and arcs; a warp for each vertex.
#include "common.cuh"

// Value (u64, or double) and kModulus (0: 2^64)
#include "generated.cuh"

DEVICE double reduced(double value) { return value; }
DEVICE u64 reduced(u64 value) { return kModulus ? value % (kModulus ? kModulus : 1) : value; }

DEVICE i64 warp_number() { return static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block(); }
DEVICE i64 num_warps() { return static_cast<i64>(gridDim.x) * (blockDim.x >> 5); }

// A step of a table program; tables are numbered from 0, and -1 is no table.
struct Step {
  int make, target, first, second;
  int label;  // of LABEL; it may need more bits than the number of a table

  DEVICE explicit Step(u64 word)
      : make(static_cast<int>(word & ((1u << kMakeBits) - 1))),
        target(field(word, 0)),
        first(field(word, 1)),
        second(field(word, 2)),
        label(static_cast<int>((word >> (kMakeBits + kTableBits)) - 1)) {}

  DEVICE static int field(u64 word, int number) {
    return static_cast<int>(word >> (kMakeBits + number * kTableBits) & ((1u << kTableBits) - 1)) - 1;
  }
};

struct Tables {
  const i64* indptr;
  const u32* indices;
  i64 num_vertices;
  const int* labels;
  const u32* reverse;
  const i64* starts;
  Value* vertices;  // Value[number, num_vertices]
  Value* arcs;      // Value[number, num_arcs]
  i64 num_arcs;

  // An entry of a table, or 1 if there is no table.
  DEVICE Value vertex(int table, i64 v) const { return table < 0 ? Value(1) : vertices[table * num_vertices + v]; }
  DEVICE Value arc(int table, i64 at) const { return table < 0 ? Value(1) : arcs[table * num_arcs + at]; }

  // Set the entries of a table at the arcs of v; each lane sets some of them.
  template <typename Number>
  DEVICE void set_arcs(const Step& step, i64 v, Number number) const {
    Value* out = arcs + step.target * num_arcs;
    for (i64 at = indptr[v] + lane_id(); at < indptr[v + 1]; at += 32) out[at] = number(at);
  }

  DEVICE void set_vertex(const Step& step, i64 v, Value number) const {
    if (lane_id() == 0) vertices[step.target * num_vertices + v] = number;
  }

  // Sum over the neighbours of v.
  DEVICE Value sum(const Step& step, i64 v) const {
    const i64 begin = indptr[v], end = indptr[v + 1];
    if (step.first < 0 && step.second < 0) return reduced(static_cast<Value>(end - begin));
    Value found = 0;
    for (i64 at = begin + lane_id(); at < end; at += 32) {
      const Value factor = step.first < 0 ? Value(1) : vertex(step.first, indices[at]);
      found += reduced(arc(step.second, at) * factor);
    }
    return reduced(warp_sum(reduced(found)));
  }

  // Make the entry of a table at v, or its entries at the arcs of v, by a warp.
  DEVICE void make(const Step& step, i64 v) const {
    switch (step.make) {
      case SUM_NEIGHBOURS: return set_vertex(step, v, sum(step, v));
      case MULTIPLY_VERTICES:
        if (lane_id() == 0) set_vertex(step, v, reduced(vertex(step.first, v) * vertex(step.second, v)));
        return;
      case LABEL: return set_vertex(step, v, labels[v] == step.label);
      case MULTIPLY_ARCS:
        return set_arcs(step, v, [&](i64 at) { return reduced(arc(step.first, at) * arc(step.second, at)); });
      case HEADS: return set_arcs(step, v, [&](i64 at) { return vertex(step.first, indices[at]); });
      case TAILS: return set_arcs(step, v, [&](i64) { return vertex(step.first, v); });
      case REVERSE: return set_arcs(step, v, [&](i64 at) { return arc(step.first, reverse[at]); });
      case ARC_TRIANGLES:
        return set_arcs(step, v, [&](i64 at) { return static_cast<Value>(starts[at + 1] - starts[at]); });
    }
  }
};

// Do up to kTableSteps steps at each vertex. A step reads what an earlier one made only at the same place, if a product of
// more than two tables takes several steps.
extern "C" __global__ void __launch_bounds__(256, 4)
    fill_tables(const i64* indptr, const u32* indices, i64 num_vertices, const int* labels, const u32* reverse,
                const i64* starts, Value* vertices, Value* arcs, i64 num_arcs, u64 word_0, u64 word_1, u64 word_2,
                u64 word_3, u64 word_4, u64 word_5, u64 word_6, u64 word_7) {
  static_assert(kTableSteps == 8);
  u64* words = reinterpret_cast<u64*>(dynamic_shared);  // a loop cannot index registers
  if (threadIdx.x == 0) {
    words[0] = word_0, words[1] = word_1, words[2] = word_2, words[3] = word_3;
    words[4] = word_4, words[5] = word_5, words[6] = word_6, words[7] = word_7;
  }
  __syncthreads();
  const Tables tables = {indptr, indices, num_vertices, labels, reverse, starts, vertices, arcs, num_arcs};
  for (i64 v = warp_number(); v < num_vertices; v += num_warps())
    for (int k = 0; k < kTableSteps && words[k]; ++k) tables.make(Step(words[k]), v);
}

// Call visit(v, x, arc, back) for both arcs of every edge (v, x), v < x; a lane for each.
template <typename Visit>
DEVICE void for_edges(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, Visit visit) {
  const i64 num_arcs = indptr[num_vertices];
  for (i64 arc = 32 * warp_number() + lane_id(); arc < num_arcs; arc += 32 * num_warps()) {
    const i64 v = lower_bound(indptr, num_vertices + 1, arc + 1) - 1;
    if (arc < split[v]) continue;
    const i64 x = indices[arc], row = indptr[x];
    visit(v, x, arc, row + lower_bound(indices + row, indptr[x + 1] - row, static_cast<u32>(v)));
  }
}

// counts of both arcs of every edge (v, x) = factor * their sum, plus deg(v) + deg(x) - 1 with `walks`.
extern "C" __global__ void __launch_bounds__(256)
    join_arcs(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, i64 factor, i64 walks,
              u64* counts) {
  for_edges(indptr, indices, split, num_vertices, [&](i64 v, i64 x, i64 arc, i64 back) {
    u64 sum = factor * (counts[arc] + counts[back]);
    if (walks) sum += indptr[v + 1] - indptr[v] + indptr[x + 1] - indptr[x] - 1;
    counts[arc] = sum;
    counts[back] = sum;
  });
}

// reverse[arc] = the arc back, for both arcs of every edge.
extern "C" __global__ void __launch_bounds__(256)
    list_reverse(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, u32* reverse) {
  for_edges(indptr, indices, split, num_vertices, [&](i64, i64, i64 arc, i64 back) {
    reverse[arc] = static_cast<u32>(back);
    reverse[back] = static_cast<u32>(arc);
  });
}
