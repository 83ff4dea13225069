// How many elementary steps a device does a second: entries are read in order and looked up in a small table.
#include "common.cuh"

// Look entries up in a table of 4096 bytes, in their order, several times; the sum is added to `total`.
extern "C" __global__ void look_up(const u32* entries, const unsigned char* table, i64 size, i64 passes, u64* total) {
  const i64 stride = static_cast<i64>(gridDim.x) * blockDim.x;
  u64 sum = 0;
  for (i64 pass = 0; pass < passes; ++pass) {
    for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += stride) {
      sum += table[(entries[i] + pass) & 4095];
    }
  }
  atomicAdd(total, sum);
}
