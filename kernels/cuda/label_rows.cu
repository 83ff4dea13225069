// Rows of a graph that is laid out by label; see longwall.kernels.cpu.label_rows.
//
// What one kernel finds is read by the next one where it lies: nothing waits for the host. Numbers are given out in
// chunks, each of which adds up what the chunks before it have.
//
// A rule says which neighbours of a vertex are kept in a role: 0: none; 1: all; 2: those with larger ids; 3: those with
// smaller ones. So each is a range of the row, in which the kinds of the vertices are looked up.
#include "common.cuh"

using Kind = unsigned char;

DEVICE i64 warp_in_grid() { return (static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x) >> 5; }
DEVICE i64 warps_of_grid() { return (static_cast<i64>(gridDim.x) * blockDim.x) >> 5; }

// The roles, as words one behind the other.
struct Roles {
  const int* labels;        // int[kinds - 1]
  const int* times;         // int[kinds]
  const int* first_role;    // int[kinds + 1]
  const int* kind_of_role;  // int[roles]
  const int* rules;         // int[roles, roles]
};

DEVICE Roles roles_in(const int* words, i64 kinds, i64 roles) {
  const int* times = words + kinds - 1;
  const int* first_role = times + kinds;
  const int* kind_of_role = first_role + kinds + 1;
  return {words, times, first_role, kind_of_role, kind_of_role + roles};
}

// What the host asks for.
struct Totals {
  u64 kept, arcs, max_degree, max_out_degree, squares, numbered;
  u64 role_arcs[1];  // [roles]: up to the last vertex of each role that has some
};
static_assert(sizeof(Totals) == 8 * (kLabelTotals + 1));

template <typename T>
DEVICE T inclusive_sum(T value) {
  for (int distance = 1; distance < 32; distance <<= 1) {
    const T before = __shfl_up_sync(kAll, value, distance);
    if (lane_id() >= distance) value += before;
  }
  return value;
}

DEVICE u64 warp_max(u64 value) {
  for (int distance = 16; distance; distance >>= 1) value = max(value, __shfl_down_sync(kAll, value, distance));
  return value;
}

// Find the kind of each vertex, and how many of each a chunk has: counts[kinds, chunks]. A warp for each chunk.
extern "C" __global__ void __launch_bounds__(128)
    find_kinds(const int* labels, i64 n, const int* words, i64 kinds, i64 roles, i64 chunk, i64 chunks, Kind* kind,
               u32* counts, u64* zeros, i64 num_zeros) {
  const Roles given = roles_in(words, kinds, roles);
  u32* own = dynamic_shared + warp_in_block() * kinds;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < num_zeros;
       i += static_cast<i64>(gridDim.x) * blockDim.x) {
    zeros[i] = 0;
  }
  for (i64 c = warp_in_grid(); c < chunks; c += warps_of_grid()) {
    for (i64 k = lane_id(); k < kinds; k += 32) own[k] = 0;
    __syncwarp();
    for (i64 v = c * chunk + lane_id(); v < min((c + 1) * chunk, n); v += 32) {
      int found = static_cast<int>(kinds) - 1;
      if (kinds > 1) {
        const int label = labels[v];
        for (int k = 0; k < kinds - 1; k++) found = label == given.labels[k] ? k : found;
      }
      kind[v] = static_cast<Kind>(found);
      atomicAdd(&own[found], 1u);
    }
    __syncwarp();
    for (i64 k = lane_id(); k < kinds; k += 32) counts[k * chunks + c] = own[k];
    __syncwarp();
  }
}

// Number the vertices in their roles, role by role (`sliced`) or in the order of ids. A warp for each chunk.
extern "C" __global__ void __launch_bounds__(128)
    number_roles(const Kind* kind, i64 n, const int* words, i64 kinds, i64 roles, i64 sliced, i64 chunk, i64 chunks,
                 const u32* counts, i64 capacity, u32* place, u32* origin, short* role, Totals* totals) {
  const Roles given = roles_in(words, kinds, roles);
  u32* next = dynamic_shared + warp_in_block() * kinds;
  for (i64 c = warp_in_grid(); c < chunks; c += warps_of_grid()) {
    u64 start = 0, running = 0;
    for (i64 k = 0; k < kinds; k++) {
      const u64 times = given.times[k];
      u64 before = 0, all = 0;
      for (i64 at = lane_id(); times && at < chunks; at += 32) {
        const u64 here = counts[k * chunks + at];
        before += at < c ? here : 0;
        all += here;
      }
      before = __shfl_sync(kAll, warp_sum(before), 0) * times;
      all = __shfl_sync(kAll, warp_sum(all), 0) * times;
      if (lane_id() == 0) next[k] = static_cast<u32>(start + before);
      start += all;
      running += before;
    }
    __syncwarp();
    if (c == 0 && lane_id() == 0) totals->numbered = start;
    for (i64 base = c * chunk; base < min((c + 1) * chunk, n); base += 32) {
      const i64 v = base + lane_id();
      const bool in = v < min((c + 1) * chunk, n);
      const u32 k = in ? kind[v] : kAll;
      const u32 times = in ? given.times[k] : 0;
      u64 at;
      if (sliced) {
        const u32 same = __match_any_sync(kAll, k);
        at = times ? next[k] + __popc(same & lanes_before()) * times : 0;
        __syncwarp();
        if (times && !(same & lanes_before())) next[k] += __popc(same) * times;
        __syncwarp();
      } else {
        const u32 upto = inclusive_sum(times);
        at = running + upto - times;
        running += __shfl_sync(kAll, upto, 31);
      }
      if (in) place[v] = static_cast<u32>(at);
      for (u32 copy = 0; copy < times && at + copy < capacity; copy++) {
        origin[at + copy] = static_cast<u32>(v);
        role[at + copy] = static_cast<short>(given.first_role[k] + copy);
      }
    }
    __syncwarp();
  }
}

// The arcs of vertex u that a rule lets through.
struct Arcs {
  i64 begin, end;
};

DEVICE Arcs arcs_of(const i64* indptr, const i64* split, i64 u, int rule) {
  if (!rule) return {0, 0};
  return {rule == 2 ? split[u] : indptr[u], rule == 3 ? split[u] : indptr[u + 1]};
}

// slices[v, r + 1]: the neighbours of v in roles up to r; a warp for each vertex. sums[chunk]: its vertices that have
// some, sums[chunks + chunk]: how many these are.
extern "C" __global__ void count_label_rows(const i64* indptr, const u32* indices, const i64* split, const Kind* kind,
                                            const u32* origin, const short* role, const int* words, i64 kinds,
                                            i64 roles, i64 chunk, i64 chunks, const Totals* totals, i64 capacity,
                                            u32* slices, u64* sums) {
  const Roles given = roles_in(words, kinds, roles);
  const i64 number = min(static_cast<i64>(totals->numbered), capacity);
  for (i64 v = warp_in_grid(); v < number; v += warps_of_grid()) {
    const i64 u = origin[v];
    const int* rule = given.rules + role[v] * roles;
    u32* out = slices + v * (roles + 1);
    u32 before = 0;
    if (lane_id() == 0) out[0] = 0;
    for (i64 r = 0; r < roles; r++) {
      const Arcs arcs = arcs_of(indptr, split, u, rule[r]);
      const int wanted = given.kind_of_role[r];
      u32 found = 0;
#pragma unroll 4
      for (i64 at = arcs.begin + lane_id(); at < arcs.end; at += 32) found += kind[indices[at]] == wanted;
      before += warp_sum(found);
      if (lane_id() == 0) out[r + 1] = before;
    }
    if (lane_id() == 0 && before) {
      atomicAdd(&sums[v / chunk], 1ull);
      atomicAdd(&sums[chunks + v / chunk], static_cast<u64>(before));
    }
  }
}

// Leave vertices without a neighbour out, and number the others anew: final_number. `new_slices` is null where rows
// have no slices. A warp for each chunk.
extern "C" __global__ void __launch_bounds__(128)
    leave_out(const int* labels, i64 has_labels, const u32* origin, const short* role, const u32* slices, i64 roles,
              i64 chunk, i64 chunks, i64 capacity, const u64* sums, u32* final_number, u32* new_origin, short* new_role,
              int* new_labels, u32* new_slices, i64* new_indptr, Totals* totals) {
  const i64 number = min(static_cast<i64>(totals->numbered), capacity);
  const i64 stride = roles + 1;
  if (warp_in_grid() == 0 && lane_id() == 0) new_indptr[0] = 0;
  for (i64 c = warp_in_grid(); c < chunks; c += warps_of_grid()) {
    u64 kept = 0, arcs = 0;
    for (i64 at = lane_id(); at < c; at += 32) {
      kept += sums[at];
      arcs += sums[chunks + at];
    }
    kept = __shfl_sync(kAll, warp_sum(kept), 0);
    arcs = __shfl_sync(kAll, warp_sum(arcs), 0);
    u64 longest = 0, squares = 0;
    for (i64 base = c * chunk; base < min((c + 1) * chunk, number); base += 32) {
      const i64 v = base + lane_id();
      const bool in = v < min((c + 1) * chunk, number);
      const u64 degree = in ? slices[v * stride + roles] : 0;
      const u32 there = __ballot_sync(kAll, degree > 0);
      const u64 place = kept + __popc(there & lanes_before()), end = arcs + inclusive_sum(degree);
      if (in) {
        final_number[v] = static_cast<u32>(place);
        const short own = role[v];
        if (new_slices && (v + 1 == number || role[v + 1] != own)) totals->role_arcs[own] = end;
        if (degree) {
          const u32 u = origin[v];
          new_origin[place] = u;
          new_role[place] = own;
          new_indptr[place + 1] = static_cast<i64>(end);
          if (has_labels) new_labels[place] = labels[u];
          for (i64 r = 0; new_slices && r < stride; r++) new_slices[place * stride + r] = slices[v * stride + r];
        }
      }
      longest = max(longest, degree);
      squares += degree * degree;
      kept += __popc(there);
      arcs = __shfl_sync(kAll, end, 31);
    }
    longest = warp_max(longest);
    squares = warp_sum(squares);
    if (lane_id() == 0) {
      atomicMax(&totals->max_degree, longest);
      atomicAdd(&totals->squares, squares);
      if (c == chunks - 1) {
        totals->kept = kept;
        totals->arcs = arcs;
      }
    }
  }
}

// Rows in slices, of which `slices` says where they begin in a row. A warp for each slice.
extern "C" __global__ void fill_label_slices(const i64* indptr, const u32* indices, const i64* split, const Kind* kind,
                                             const u32* place, const int* words, i64 kinds, i64 roles,
                                             const u32* origin, const short* role, const u32* final_number,
                                             const u32* slices, const i64* new_indptr, u32* new_indices, i64* new_split,
                                             Totals* totals) {
  const Roles given = roles_in(words, kinds, roles);
  const i64 number = static_cast<i64>(totals->kept);
  u64 longest = 0;
  for (i64 item = warp_in_grid(); item < number * roles; item += warps_of_grid()) {
    const i64 v = item / roles, r = item - v * roles, u = origin[v];
    const Arcs arcs = arcs_of(indptr, split, u, given.rules[role[v] * roles + r]);
    const i64 middle = split[u];
    const int wanted = given.kind_of_role[r];
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
    if (r == role[v]) {
      if (lane_id() == 0) new_split[v] = first + smaller;
      longest = max(longest, static_cast<u64>(first + smaller - new_indptr[v]));
    }
  }
  if (lane_id() == 0 && longest) atomicMax(&totals->max_out_degree, longest);
}

// Rows in the order of ids, where a neighbour stands once for each of its roles. A warp for each vertex.
extern "C" __global__ void fill_label_rows(const i64* indptr, const u32* indices, const i64* split, const Kind* kind,
                                           const u32* place, const int* words, i64 kinds, i64 roles, const u32* origin,
                                           const short* role, const u32* final_number, const i64* new_indptr,
                                           u32* new_indices, i64* new_split, Totals* totals) {
  const Roles given = roles_in(words, kinds, roles);
  const i64 number = static_cast<i64>(totals->kept);
  u64 longest = 0;
  for (i64 v = warp_in_grid(); v < number; v += warps_of_grid()) {
    const i64 u = origin[v], begin = indptr[u], middle = split[u], end = indptr[u + 1];
    const int* rule = given.rules + role[v] * roles;
    i64 out = new_indptr[v];
    u32 smaller = 0;
    for (i64 base = begin; base < end; base += 32) {
      const i64 at = base + lane_id();
      const bool in = at < end;
      const u32 x = in ? indices[at] : 0;
      const int wrong = at < middle ? 2 : 3;  // the rule that lets the other half through
      const i64 first = in ? given.first_role[kind[x]] : 0, last = in ? given.first_role[kind[x] + 1] : 0;
      u32 mine = 0;
      for (i64 r = first; r < last; r++) mine += rule[r] && rule[r] != wrong;
      const u32 upto = inclusive_sum(mine);
      i64 to = out + upto - mine;
      for (i64 r = first; r < last; r++) {
        if (rule[r] && rule[r] != wrong) new_indices[to++] = final_number[place[x] + static_cast<u32>(r - first)];
      }
      smaller += at < middle ? mine : 0;
      out += __shfl_sync(kAll, upto, 31);
    }
    smaller = __shfl_sync(kAll, warp_sum(smaller), 0);
    if (lane_id() == 0) new_split[v] = new_indptr[v] + smaller;
    longest = max(longest, static_cast<u64>(smaller));
  }
  if (lane_id() == 0 && longest) atomicMax(&totals->max_out_degree, longest);
}
