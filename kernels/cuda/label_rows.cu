// Rows of a graph that is laid out by label; see longwall.kernels.cpu.label_rows.
//
// A rule says which neighbours of a vertex are kept in a role: 0: none; 1: all; 2: those with larger ids; 3: those with
// smaller ones. So each is a range of the row, in which the kinds of the vertices are looked up.
#include "common.cuh"

using Kind = unsigned char;

DEVICE i64 warp_in_grid() { return (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) >> 5; }
DEVICE i64 warps_of_grid() { return (static_cast<i64>(gridDim.x) * blockDim.x) >> 5; }

// The arcs of vertex u that a rule lets through.
struct Arcs {
  i64 begin, end;
};

DEVICE Arcs arcs_of(const i64* indptr, const i64* split, i64 u, int rule) {
  if (!rule) return {0, 0};
  return {rule == 2 ? split[u] : indptr[u], rule == 3 ? split[u] : indptr[u + 1]};
}

// slices[v, r + 1]: the neighbours of v in roles up to r. A warp for each vertex.
extern "C" __global__ void count_label_rows(const i64* indptr, const u32* indices, const i64* split, const Kind* kind,
                                            const i64* origin, const short* role, const Kind* kind_of_role,
                                            const Kind* rules, i64 roles, i64 number, u32* slices) {
  for (i64 v = warp_in_grid(); v < number; v += warps_of_grid()) {
    const i64 u = origin[v];
    const Kind* rule = rules + role[v] * roles;
    u32* out = slices + v * (roles + 1);
    u32 before = 0;
    if (lane_id() == 0) out[0] = 0;
    for (i64 r = 0; r < roles; r++) {
      const Arcs arcs = arcs_of(indptr, split, u, rule[r]);
      const Kind wanted = kind_of_role[r];
      u32 found = 0;
#pragma unroll 4
      for (i64 at = arcs.begin + lane_id(); at < arcs.end; at += 32) found += kind[indices[at]] == wanted;
      before += warp_sum(found);
      if (lane_id() == 0) out[r + 1] = before;
    }
  }
}

// Rows in slices, of which `slices` says where they begin in a row. A warp for each slice.
extern "C" __global__ void fill_label_slices(const i64* indptr, const u32* indices, const i64* split, const Kind* kind,
                                             const u32* place, const Kind* kind_of_role, const Kind* rules, i64 roles,
                                             const i64* origin, const short* role, const u32* final_number,
                                             const u32* slices, const i64* new_indptr, i64 number, u32* new_indices,
                                             i64* new_split) {
  for (i64 item = warp_in_grid(); item < number * roles; item += warps_of_grid()) {
    const i64 v = item / roles, r = item - v * roles, u = origin[v];
    const Arcs arcs = arcs_of(indptr, split, u, rules[role[v] * roles + r]);
    const i64 middle = split[u];
    const Kind wanted = kind_of_role[r];
    i64 out = new_indptr[v] + slices[v * (roles + 1) + r];
    const i64 first = out;
    u32 smaller = 0;
    for (i64 base = arcs.begin; base < arcs.end; base += 32) {
      const i64 at = base + lane_id();
      const u32 x = at < arcs.end ? indices[at] : 0;
      const bool keep = at < arcs.end && kind[x] == wanted;
      const u32 found = __ballot_sync(kAll, keep);
      if (keep) new_indices[out + __popc(found & lanes_before())] = final_number[place[x]];
      smaller += __popc(__ballot_sync(kAll, keep && at < middle));
      out += __popc(found);
    }
    if (r == role[v] && lane_id() == 0) new_split[v] = first + smaller;
  }
}

// Rows in the order of ids, where a neighbour stands once for each of its roles. A warp for each vertex.
extern "C" __global__ void fill_label_rows(const i64* indptr, const u32* indices, const i64* split, const Kind* kind,
                                           const u32* place, const i64* first_role, const Kind* rules, i64 roles,
                                           const i64* origin, const short* role, const u32* final_number,
                                           const i64* new_indptr, i64 number, u32* new_indices, i64* new_split) {
  for (i64 v = warp_in_grid(); v < number; v += warps_of_grid()) {
    const i64 u = origin[v], begin = indptr[u], middle = split[u], end = indptr[u + 1];
    const Kind* rule = rules + role[v] * roles;
    i64 out = new_indptr[v];
    u32 smaller = 0;
    for (i64 base = begin; base < end; base += 32) {
      const i64 at = base + lane_id();
      const bool in = at < end;
      const u32 x = in ? indices[at] : 0;
      const Kind wrong = at < middle ? 2 : 3;  // the rule that lets the other half through
      const i64 first = in ? first_role[kind[x]] : 0, last = in ? first_role[kind[x] + 1] : 0;
      u32 mine = 0;
      for (i64 r = first; r < last; r++) mine += rule[r] && rule[r] != wrong;
      u32 upto = mine;
      for (int distance = 1; distance < 32; distance <<= 1) {
        const u32 before = __shfl_up_sync(kAll, upto, distance);
        if (lane_id() >= distance) upto += before;
      }
      i64 to = out + upto - mine;
      for (i64 r = first; r < last; r++) {
        if (rule[r] && rule[r] != wrong) new_indices[to++] = final_number[place[x] + static_cast<u32>(r - first)];
      }
      smaller += at < middle ? mine : 0;
      out += __shfl_sync(kAll, upto, 31);
    }
    smaller = warp_sum(smaller);
    if (lane_id() == 0) new_split[v] = new_indptr[v] + smaller;
  }
}
