// How many bytes will be read of every page of the adjacency (GAMMA, Definition 4.1).
#include "common.cuh"

// Whether a position has the prefix (of some columns, `stride` apart) of the one before; without columns none has.
__device__ bool is_shared(const u32* prefix, i64 columns, i64 stride, i64 i) {
  if (i == 0 || columns == 0) return false;
  for (i64 column = 0; column < columns; ++column) {
    const u32* values = prefix + column * stride;
    if (values[i] != values[i - 1]) return false;
  }
  return true;
}

// Add the bytes of rows to `ends` (of their first and last pages) and `steps` (of the pages between). Steps are
// differences from page to page, modulo 2^64, so that a row costs the same however many pages it spans.
extern "C" __global__ void add_rows(const i64* indptr, const i64* split, const u32* vertices, i64 num_rows,
                                    const u32* prefix, i64 columns, i64 column_stride, i64 part, i64 times,
                                    i64 page_arcs, u64* ends, u64* steps) {
  const i64 stride = static_cast<i64>(gridDim.x) * blockDim.x;
  const u64 arc_bytes = 4 * times;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < num_rows; i += stride) {
    if (is_shared(prefix, columns, column_stride, i)) continue;
    const u32 vertex = vertices[i];
    const i64 begin = part == kLarger ? split[vertex] : indptr[vertex];
    const i64 end = part == kSmaller ? split[vertex] : indptr[vertex + 1];
    if (begin == end) continue;
    const i64 page = begin / page_arcs, last = (end - 1) / page_arcs;
    if (page == last) {
      atomicAdd(&ends[page], (end - begin) * arc_bytes);
    } else {
      atomicAdd(&ends[page], ((page + 1) * page_arcs - begin) * arc_bytes);
      atomicAdd(&ends[last], (end - last * page_arcs) * arc_bytes);
      if (page + 1 < last) {
        atomicAdd(&steps[page + 1], page_arcs * arc_bytes);
        atomicAdd(&steps[last], 0 - page_arcs * arc_bytes);
      }
    }
  }
}
