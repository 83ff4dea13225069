// How many bytes will be read of every page of the adjacency (GAMMA, Definition 4.1).
#include "common.cuh"

constexpr i64 kSmaller = 1, kLarger = 2;  // frontier.Part

// Add the bytes of rows to `ends` (of their first and last pages) and `steps` (of the pages between). Steps are
// differences from page to page, modulo 2^64, so that a row costs the same however many pages it spans.
extern "C" __global__ void add_rows(const i64* indptr, const i64* split, const u32* vertices, i64 num_rows, i64 part,
                                    i64 times, i64 page_slots, u64* ends, u64* steps) {
  const i64 stride = static_cast<i64>(gridDim.x) * blockDim.x;
  const u64 slot_bytes = 4 * times;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < num_rows; i += stride) {
    const u32 vertex = vertices[i];
    const i64 begin = part == kLarger ? split[vertex] : indptr[vertex];
    const i64 end = part == kSmaller ? split[vertex] : indptr[vertex + 1];
    if (begin == end) continue;
    const i64 page = begin / page_slots, last = (end - 1) / page_slots;
    if (page == last) {
      atomicAdd(&ends[page], (end - begin) * slot_bytes);
    } else {
      atomicAdd(&ends[page], ((page + 1) * page_slots - begin) * slot_bytes);
      atomicAdd(&ends[last], (end - last * page_slots) * slot_bytes);
      if (page + 1 < last) {
        atomicAdd(&steps[page + 1], page_slots * slot_bytes);
        atomicAdd(&steps[last], 0 - page_slots * slot_bytes);
      }
    }
  }
}
