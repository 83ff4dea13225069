// Extend embeddings made of edges by the edges that touch them.
//
// The new edges of a row lie in the adjacency lists of its vertices, the distinct ends of its edges. What a list has that
// is no new edge of the row is found by searching it for the row's other vertices (count_edges); prefix sums of what is
// left give every list its place in the output, which warps share out among themselves (write_edges). So lists are read
// once, and nothing is compacted.
#include "common.cuh"

constexpr u32 kNoMore = 0xffffffffu;  // behind the positions that are left out of a list

// Rows of edges, column by column, `stride` apart. An edge is its larger end << 32 | its smaller end.
struct Rows {
  const i64* codes;
  i64 stride;

  DEVICE i64 edge(i64 row, int column) const { return codes[column * stride + row]; }

  DEVICE u32 end(i64 row, int number) const {
    const u64 code = static_cast<u64>(edge(row, number >> 1));
    return static_cast<u32>(number & 1 ? code : code >> 32);
  }

  // Whether an end stands before in its row; the ends of one edge differ.
  DEVICE bool repeated(i64 row, int number) const {
    const u32 vertex = end(row, number);
    bool found = false;
    for (int other = 0; other < (number & ~1); ++other) found |= end(row, other) == vertex;
    return found;
  }

  DEVICE bool has(i64 row, int columns, i64 code) const {
    bool found = false;
    for (int column = 0; column < columns; ++column) found |= edge(row, column) == code;
    return found;
  }

  // Whether a row's first columns are those of the row before.
  DEVICE bool shared(i64 row, int columns) const {
    if (row == 0) return false;
    bool same = true;
    for (int column = 0; column < columns; ++column) same &= edge(row, column) == edge(row - 1, column);
    return same;
  }
};

// Where the lists of rows' ends are, i64[ends, stride], where not in the adjacency itself.
struct Lists {
  const i64* indptr;
  const i64* begins;
  i64 stride;

  DEVICE i64 begin(i64 row, int number, u32 vertex) const {
    return begins ? begins[number * stride + row] : indptr[vertex];
  }
};

DEVICE i64 code_of(u32 one, u32 other) {
  return static_cast<i64>(static_cast<u64>(max(one, other)) << 32 | min(one, other));
}

// Collect the vertices whose lists rows read, in any order; rows that follow each other share those of their common
// prefix.
extern "C" __global__ void __launch_bounds__(256)
    collect_vertices(const i64* codes, i64 stride, i64 num_rows, i64 num_ends, u32* vertices, u64* found) {
  const Rows rows = {codes, stride};
  const i64 total = num_rows * num_ends, threads = static_cast<i64>(gridDim.x) * blockDim.x;
  // Whole warps go round.
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i - lane_id() < total; i += threads) {
    const int number = static_cast<int>(i / num_rows);
    const i64 row = i - number * num_rows;
    const bool read = i < total && !rows.repeated(row, number) && !rows.shared(row, (number >> 1) + 1);
    const u32 many = __ballot_sync(kAll, read);
    u64 at = 0;
    if (lane_id() == 0 && many) at = atomicAdd(found, static_cast<u64>(__popc(many)));
    at = __shfl_sync(kAll, at, 0) + __popc(many & lanes_before());
    if (read) vertices[at] = rows.end(row, number);
  }
}

// Write the ends of edges in columns of their own: u32[num_ends, num_rows].
extern "C" __global__ void __launch_bounds__(256)
    split_ends(const i64* codes, i64 stride, i64 num_rows, i64 num_ends, u32* ends) {
  const Rows rows = {codes, stride};
  const i64 total = num_rows * num_ends, threads = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += threads) {
    const i64 number = i / num_rows;
    ends[i] = rows.end(i - number * num_rows, static_cast<int>(number));
  }
}

// Count the new edges that each end of each row finds in its list (i64[num_rows, num_ends]), and find which positions of
// the list are left out, ascending (u32[num_rows, num_ends, num_ends - 1]): those of vertices of the row, but for edges
// that are not in the row and are found from their larger end. Repeated ends find nothing.
extern "C" __global__ void __launch_bounds__(256)
    count_edges(const i64* indptr, const u32* indices, const i64* codes, i64 stride, i64 num_rows, i64 num_ends,
                const i64* begins, const int* lengths, i64 list_stride, i64* sizes, u32* left_out) {
  const Rows rows = {codes, stride};
  const Lists lists = {indptr, begins, list_stride};
  const int ends = static_cast<int>(num_ends);
  const i64 total = num_rows * num_ends, threads = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += threads) {
    const i64 row = static_cast<u32>(i) / static_cast<u32>(ends);
    const int number = static_cast<int>(i - row * ends);
    if (rows.repeated(row, number)) {
      sizes[i] = 0;
      continue;
    }
    const u32 vertex = rows.end(row, number);
    const u32* const list = indices + lists.begin(row, number, vertex);
    const int length =
        lengths ? lengths[number * list_stride + row] : static_cast<int>(indptr[vertex + i64(1)] - indptr[vertex]);
    u32* const out = left_out + i * (ends - 1);
    int many = 0;
    for (int other = 0; other < ends; ++other) {
      const u32 near = rows.end(row, other);
      if (near == vertex || rows.repeated(row, other)) continue;
      if (vertex > near && !rows.has(row, ends >> 1, code_of(vertex, near))) continue;
      const int position = lower_bound(list, length, near);
      if (position == length || list[position] != near) continue;
      int at = many++;
      for (; at && out[at - 1] > static_cast<u32>(position); --at) out[at] = out[at - 1];
      out[at] = position;
    }
    if (many < ends - 1) out[many] = kNoMore;
    sizes[i] = length - many;
  }
}

// Cut rows from `first` on into parts of `capacity` new edges at most, but of one row at least: up to `most` parts, for
// each of which `cuts` says where it ends, how many new edges it has, and whether all of its rows have some.
extern "C" __global__ void __launch_bounds__(256)
    cut_rows(const i64* list_ends, i64 num_ends, i64 num_rows, i64 first, i64 capacity, i64 most, i64* cuts) {
  const auto end_of = [&](i64 row) { return row < 0 ? 0 : list_ends[(row + 1) * num_ends - 1]; };
  for (i64 cut = 0; cut < most && first < num_rows; ++cut) {
    const i64 before = end_of(first - 1);
    // All warps look for the same: the largest `low` whose rows fit.
    i64 low = first + 1, high = num_rows;
    while (low < high) {
      const i64 step = (high - low + 31) / 32, probe = low + step * (lane_id() + 1);
      const bool fits = probe <= high && end_of(probe - 1) - before <= capacity;
      low += step * __popc(__ballot_sync(kAll, fits));
      high = min(high, low + step - 1);
    }
    bool grow = true;
    for (i64 row = first + threadIdx.x; row < low; row += blockDim.x) grow &= end_of(row) > end_of(row - 1);
    const int all_grow = __syncthreads_and(grow);
    if (threadIdx.x == 0) {
      cuts[3 * cut] = low;
      cuts[3 * cut + 1] = end_of(low - 1) - before;
      cuts[3 * cut + 2] = all_grow != 0;
    }
    first = low;
  }
}

// Write the new edges of the rows first to last - 1, and where those of each begin and the last ones end. `list_ends` are
// the prefix sums of what count_edges gave.
extern "C" __global__ void __launch_bounds__(256)
    write_edges(const i64* indptr, const u32* indices, const i64* codes, i64 stride, i64 num_ends, const i64* begins,
                i64 list_stride, const i64* list_ends, const u32* left_out, i64 first, i64 last, i64* offsets, i64* out) {
  const Rows rows = {codes, stride};
  const Lists lists = {indptr, begins, list_stride};
  const int lane = lane_id(), most_left_out = static_cast<int>(num_ends) - 1;
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  const i64 thread = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x;
  const auto begin_of = [&](i64 list) { return list ? list_ends[list - 1] : 0; };  // in the output
  for (i64 row = first + thread; row <= last; row += threads) {
    offsets[row - first] = begin_of(row * num_ends) - begin_of(first * num_ends);
  }
  // Of a list, the vertex, where it begins, and what is left out of it; and from there an edge.
  struct Source {
    u32 vertex;
    const u32* list;
    const u32* left_out;
  };
  const auto source_of = [&](i64 list) {
    const i64 row = static_cast<u32>(list) / static_cast<u32>(num_ends);
    const int number = static_cast<int>(list - row * num_ends);
    const u32 vertex = rows.end(row, number);
    return Source{vertex, indices + lists.begin(row, number, vertex), left_out + list * most_left_out};
  };
  const auto edge_at = [&](const Source& source, i64 position) {
    for (int i = 0; i < most_left_out && source.left_out[i] <= position; ++i) ++position;
    return code_of(source.vertex, source.list[position]);
  };
  const i64 before = begin_of(first * num_ends), total = begin_of(last * num_ends), number = last * num_ends;
  i64* const edges = out - before;
  for (i64 at = before + (thread >> 5) * kEdgeSegment; at < total; at += (threads >> 5) * kEdgeSegment) {
    const i64 stop = min(at + kEdgeSegment, total);
    i64 done = at, list = first * num_ends;
    list += lower_bound(list_ends + list, number - list, at + 1);
    while (done < stop) {
      const i64 own = list + lane, end = own < number ? list_ends[own] : total;
      const i64 nearest = __shfl_sync(kAll, end, 0);
      if (nearest - done >= 32) {  // one long list
        const Source source = source_of(list);
        const i64 begin = begin_of(list), upto = min(nearest, stop);
        // What is read over the link should be whole lines of 128 bytes.
        const i64 inside = (static_cast<i64>(reinterpret_cast<u64>(source.list) >> 2) + done - begin) % 32;
        for (i64 i = done - inside + lane; i < upto; i += 32) {
          if (i >= done) edges[i] = edge_at(source, i - begin);
        }
        done = upto;
        ++list;
        continue;
      }
      // The lists among the next 32 edges; some may be empty.
      int passed = 0;
      for (int step = 16; step; step >>= 1) {
        if (__shfl_sync(kAll, end, passed + step - 1) <= done + lane) passed += step;
      }
      const i64 upto = min(min(__shfl_sync(kAll, end, 31), stop), done + 32);
      if (done + lane < upto) {
        edges[done + lane] = edge_at(source_of(list + passed), done + lane - begin_of(list + passed));
      }
      list += __popc(__ballot_sync(kAll, own < number && end <= upto));
      done = upto;
    }
  }
}
