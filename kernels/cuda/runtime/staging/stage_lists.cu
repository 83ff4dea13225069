// Copy the adjacency lists that rows read of host memory to the device, each once, in the order of its pages.
//
// find_lists enters the lists to copy in a hash table; what it entered is sorted; measure_lists writes begins and
// lengths, of which prefix sums are taken; stage_lists copies; settle_lists writes for the rows where their lists are now.
// Where there are two buffers, lists that the other one has are copied from there: they need not cross the link again.
#include "pages.cuh"

constexpr int kLine = 32;                 // arcs in 128 bytes, which the link moves at once
constexpr i64 kEntered = i64(1) << 62;    // a begin of -kEntered - s says: slot s of the table

// The part of a vertex's row that is read.
struct List {
  i64 begin;
  int length;
};

DEVICE List list_of(const i64* indptr, const i64* split, u32 vertex, i64 part) {
  const i64 begin = part == kLarger ? split[vertex] : indptr[vertex];
  const i64 end = part == kSmaller ? split[vertex] : indptr[vertex + i64(1)];
  return {begin, static_cast<int>(end - begin)};
}

// Keys are in the order of the lists' begins, and below 2^34; 0 is none.
DEVICE u64 key_of(u32 vertex, i64 part) { return static_cast<u64>(vertex) << 2 | static_cast<u64>(part + 1); }

DEVICE List list_of_entry(const i64* indptr, const i64* split, u64 entry) {
  const u64 key = entry >> kStagingSlotBits;
  return list_of(indptr, split, static_cast<u32>(key >> 2), static_cast<i64>(key & 3) - 1);
}

DEVICE u32 slot_of_entry(u64 entry) { return static_cast<u32>(entry) & ((1u << kStagingSlotBits) - 1); }

// Slot of a key in a table that is at most half full; `entered`: it was not there before.
DEVICE u32 enter(u64* table, i64 slots, u64 key, bool& entered) {
  i64 slot = static_cast<i64>(__umul64hi(key * 0x9e3779b97f4a7c15ull, static_cast<u64>(slots)));
  for (;;) {
    u64 found = load_volatile(&table[slot]);  // many rows ask for hubs: most find them there
    if (!found) {
      found = atomicCAS(&table[slot], u64(0), key);
      entered = !found;
    }
    if (!found || found == key) return static_cast<u32>(slot);
    slot = slot + 1 == slots ? 0 : slot + 1;
  }
}

// Write where the lists of rows begin, and their lengths; for a list to be copied, kEntered less its slot. A list whose
// pages have copies is read there. `named` are the lists' columns and parts, i64[num_lists, 2]; `found` is the number of
// entries, and of their arcs. Lists of `longest` arcs or more stay where they are.
extern "C" __global__ void __launch_bounds__(256)
    find_lists(const i64* indptr, const i64* split, const u32* rows, i64 column_step, i64 row_step, i64 num_rows,
               const i64* named, i64 num_lists, const i64* places, i64 longest, u64* table, i64 slots,
               u64* entries, u64* found, i64* begins, int* lengths) {
  const int lane = lane_id();
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  const i64 warp = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
  const i64 tiles = (num_rows + 31) >> 5;  // of every list
  u64 total = 0;
  for (i64 tile = warp; tile < tiles * num_lists; tile += warps) {
    const i64 number = tile / tiles, row = (tile - number * tiles) * 32 + lane;
    const i64 column = named[2 * number], part = named[2 * number + 1];
    const bool inside = row < num_rows;
    const u32 vertex = inside ? rows[column * column_step + row * row_step] : 0;
    // Neighbouring rows often have a vertex in common: the first of them looks for it.
    const u32 before = __shfl_up_sync(kAll, vertex, 1);
    const bool first = inside && (lane == 0 || vertex != before);
    List list = {0, 0};
    u32 slot = 0;
    bool entered = false;
    if (first) {
      list = list_of(indptr, split, vertex, part);
      const i64 shift = list.length > 0 ? copy_of_list(places, list.begin, list.length) : 0;
      if (shift) {
        list.begin += shift;
      } else if (list.length > 0 && list.length < longest) {
        slot = enter(table, slots, key_of(vertex, part), entered);
        list.begin = -kEntered - static_cast<i64>(slot);
      }
    }
    const u32 many = __ballot_sync(kAll, entered);
    if (many) {
      u64 at = 0;
      if (lane == 0) at = atomicAdd(&found[0], static_cast<u64>(__popc(many)));
      at = __shfl_sync(kAll, at, 0) + __popc(many & lanes_before());
      if (entered) {
        entries[at] = key_of(vertex, part) << kStagingSlotBits | slot;
        total += list.length;
      }
    }
    const int from = 31 - __clz(__ballot_sync(kAll, first) & (lanes_before() | 1u << lane));
    const i64 begin = __shfl_sync(kAll, list.begin, from);
    const int length = __shfl_sync(kAll, list.length, from);
    if (inside) {
      begins[number * num_rows + row] = begin;
      lengths[number * num_rows + row] = length;
    }
  }
  total = warp_sum(total);
  if (lane == 0 && total) atomicAdd(&found[1], total);
}

// Write where the lists of entries are read, counted from the adjacency's first arc, and their lengths. What the other
// buffer has (`there` are its entries, sorted, whose lists end at `there_ends`; it begins at `origin`) is read there, and
// its arcs are added to `reused`.
extern "C" __global__ void __launch_bounds__(256)
    measure_lists(const i64* indptr, const i64* split, const u64* entries, i64 number, const u64* there,
                  const i64* there_ends, i64 there_number, i64 origin, i64* begins, i64* lengths, u64* reused) {
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  u64 again = 0;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < number; i += threads) {
    const List list = list_of_entry(indptr, split, entries[i]);
    const u64 key = entries[i] >> kStagingSlotBits;
    const i64 at = there_number ? lower_bound(there, there_number, key << kStagingSlotBits) : there_number;
    const bool found = at < there_number && there[at] >> kStagingSlotBits == key;
    begins[i] = found ? origin + (at ? there_ends[at - 1] : 0) : list.begin;
    lengths[i] = list.length;
    again += found ? list.length : 0;
  }
  again = warp_sum(again);
  if (lane_id() == 0 && again) atomicAdd(reused, again);
}

// Copy the lists of entries one behind the other to `out`, where they end at `ends`, and write to the entries' slots of
// the table where they begin. Warps share out the buffer, not the lists, which differ in length by orders of magnitude.
extern "C" __global__ void __launch_bounds__(256, 8)
    stage_lists(const u32* indices, const u64* entries, const i64* begins, const i64* ends, i64 number, i64 total,
                i64* table, u32* out) {
  const int lane = lane_id();
  const i64 warps = static_cast<i64>(gridDim.x) * (blockDim.x >> 5);
  const i64 warp = static_cast<i64>(blockIdx.x) * (blockDim.x >> 5) + warp_in_block();
  const i64 aligned = static_cast<i64>(reinterpret_cast<u64>(indices) >> 2);  // lines are those of addresses
  for (i64 segment = warp; segment * kStagingSegment < total; segment += warps) {
    i64 at = segment * kStagingSegment;
    const i64 stop = min(at + kStagingSegment, total);
    i64 list = lower_bound(ends, number, at + 1);
    while (at < stop) {
      // The lists that may have arcs among the next 32; none is empty.
      const i64 own = list + lane, end = own < number ? ends[own] : total;
      i64 start = __shfl_up_sync(kAll, end, 1);
      if (lane == 0) start = list ? ends[list - 1] : 0;
      const i64 shift = own < number ? begins[own] - start : 0;
      int width = kLine;
      // Inside of a long list, go on at the end of a line.
      if (__shfl_sync(kAll, end, 0) - at >= kLine) {
        width -= static_cast<int>((aligned + __shfl_sync(kAll, shift, 0) + at) % kLine);
      }
      width = static_cast<int>(min(static_cast<i64>(width), stop - at));
      if (own < number && start >= at && start < at + width) table[slot_of_entry(entries[own])] = start;
      const i64 past = end - at;
      const u32 starts = __reduce_or_sync(kAll, past < 32 ? 1u << past : 0u);
      const i64 from = __shfl_sync(kAll, shift, __popc(starts & (lanes_before() | 1u << lane))) + at + lane;
      if (lane < width) out[at + lane] = indices[from];
      list += __popc(__ballot_sync(kAll, own < number && past <= width));
      at += width;
    }
  }
}

// Where `begins` has a slot of the table, put what is there, counted from the buffer.
extern "C" __global__ void __launch_bounds__(256)
    settle_lists(const i64* table, i64 buffer, i64 number, i64* begins) {
  const i64 threads = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < number; i += threads) {
    const i64 begin = begins[i];
    if (begin <= -kEntered) begins[i] = buffer + table[-kEntered - begin];
  }
}
