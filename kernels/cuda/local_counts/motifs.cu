// Count the connected induced subgraphs of kSize vertices by pattern, or the orbits of their vertices.
//
// Connected sets of kSize - 1 vertices are enumerated depth-first, each once, and of one vertex more only its mask is
// counted, which of the members are its neighbours; see longwall.kernels.cpu.local_counts.motifs. A block holds the set, and a byte
// per vertex of the graph with its mask; there is nothing whose size depends on degrees. Above a set of kSize - 2
// vertices the block's warps share out the candidates for the last one, and walk over the neighbours of each.
//
// A job is a root (the first two vertices of a set, that is, an arc; a vertex where kSize is 3), cut into chunks of
// candidates for the next vertex. Chunks are taken off the block's own job, and off those of others when no root is
// left: so no root, however heavy, is one block's work. From 6 vertices on most of the work may lie below one chunk, so
// a block that finds no chunk waits for a donation: a set of kGiven vertices that a busy block has found and not searched.
#include "common.cuh"
#include "generated.cuh"

using u8 = unsigned char;

constexpr int kPrefix = kSize - 2;                // members above which the last two vertices are
constexpr int kRoots = kSize == 3 ? 1 : 2;        // members that a job has
constexpr int kMasks = 1 << kPrefix;              // of the members of a prefix
constexpr int kPerLane = (kMasks + 31) / 32;      // masks that a lane counts
constexpr int kTotals = kClasses << (kSize - 1);  // counters: by class and mask
constexpr u32 kMember = 0x80;                     // mark of a vertex that is in the set
constexpr int kGiven = kSize < 6 ? 0 : kPrefix - 1;  // members of a donated set; 0: none is donated
constexpr u32 kRootsAtOnce = kGiven ? 1 : 8;
constexpr u32 kLongestNap = 1 << 11;  // ns between two looks at a slot

// How busy blocks donate sets to blocks that wait, each at a slot of its own. A busy block takes a permit first. At most as
// many permits exist as open slots, so a block with a permit finds a slot.
struct Control {
  u32 next;     // the first root that is not taken
  u32 busy;     // blocks that have work, or a donated set to begin with
  u32 permits;  // open slots that no busy block looks for
};

enum SlotState : u32 { kClosed, kOpen, kClaimed, kFilled };

// A donated set; its next member stands in the row of member `list`, from an offset on, or in a later member's row.
struct Slot {
  u32 state, list, offset, members[5];
};
static_assert(sizeof(Control) == 4 * kMotifControlWords && sizeof(Slot) == 4 * kMotifSlotWords && kGiven <= 5);

struct Shared {
  u64 known[2 * kMasks];  // from 1 << d on: number of vertices outside the first d members, by mask
  u64 totals[kSharedTotals ? kTotals : 1];
  i64 begin[8], end[8];  // the members' rows
  u32 vertex[8];
  u32 fresh[kMasks];           // neighbours of the newest member, by mask
  u32 taken[kMasks];           // last members, by mask
  u32 found[kMasks * kMasks];  // their neighbours, by the mask of both
  u32 root, chunk, owner, stopped;
  u32 wanted;    // whether blocks wait for sets
  u32 given;     // whether the last set was donated, or a set was received
  u32 receiver;  // the block that got the last set
};

struct Block {
  const i64* indptr;
  const u32* indices;
  const i64* split;
  i64 num_vertices;
  const u32* entries;  // by code: class and numbering (or orbits, per vertex)
  u8* marks;
  u64* totals;  // by class and mask (or by orbit and vertex)
  Control* control;
  Slot* slots;
  const u32* stop;
  Shared* shared;
  double estimate;
};

// Count the vertices in the block's share of a row by mask: lane i counts mask i, and 32 more than that; members are
// left out. With SET, those in the row get the bit of a new member.
template <int BITS, bool SET>
DEVICE void tally(const Block& block, i64 begin, i64 end, int part, int parts, u32 (&count)[kPerLane]) {
  const int lane = lane_id();
  for (i64 base = begin + 32 * part; base < end; base += 32 * parts) {
    const i64 at = base + lane;
    const u32 vertex = at < end ? block.indices[at] : 0;
    const u32 mark = at < end ? block.marks[vertex] : kMember;
    const u32 outside = __ballot_sync(kAll, mark < kMember);
    u32 same[kPerLane];
    for (int r = 0; r < kPerLane; ++r) same[r] = outside;
#pragma unroll
    for (int bit = 0; bit < BITS; ++bit) {
      const u32 with = __ballot_sync(kAll, mark >> bit & 1);
      for (int r = 0; r < kPerLane; ++r) same[r] &= (lane + 32 * r) >> bit & 1 ? with : ~with;
    }
    for (int r = 0; r < kPerLane; ++r) count[r] += __popc(same[r]);
    if (SET && at < end) block.marks[vertex] = static_cast<u8>(mark | 1u << BITS);
  }
}

// Make v member D.
template <int D>
DEVICE void push(const Block& block, u32 v) {
  Shared& shared = *block.shared;
  const u32 own = block.marks[v];
  const i64 begin = block.indptr[v], end = block.indptr[v + 1];
  for (int mask = threadIdx.x; mask < 1 << D; mask += blockDim.x) shared.fresh[mask] = 0;
  __syncthreads();
  u32 count[kPerLane] = {};
  tally<D, true>(block, begin, end, warp_in_block(), blockDim.x >> 5, count);
  for (int r = 0; r < kPerLane; ++r) {
    const int mask = lane_id() + 32 * r;
    if (mask < 1 << D && count[r]) atomicAdd(&shared.fresh[mask], count[r]);
  }
  if (threadIdx.x == 0) {
    block.marks[v] = static_cast<u8>(own | kMember);
    shared.vertex[D] = v;
    shared.begin[D] = begin;
    shared.end[D] = end;
    shared.stopped = load_volatile(block.stop);
    if (kGiven) shared.wanted = load_volatile(&block.control->permits);
  }
  __syncthreads();
  for (int mask = threadIdx.x; mask < 1 << D; mask += blockDim.x) {
    const u64 with = shared.fresh[mask];
    shared.known[(2 << D) + (1 << D) + mask] = with;
    shared.known[(2 << D) + mask] = shared.known[(1 << D) + mask] - with - (mask == static_cast<int>(own));
  }
  __syncthreads();
}

// Undo push.
template <int D>
DEVICE void pop(const Block& block) {
  __syncthreads();
  const u32 v = block.shared->vertex[D];
  for (i64 at = block.indptr[v] + threadIdx.x; at < block.indptr[v + 1]; at += blockDim.x)
    block.marks[block.indices[at]] &= static_cast<u8>(~(1u << D));
  if (threadIdx.x == 0) block.marks[v] &= static_cast<u8>(~kMember);
  __syncthreads();
}

// Which of the 32 positions from `base` on hold a candidate that belongs to a member's row, the first that has it.
DEVICE u32 candidates(const Block& block, int list, i64 base, i64 end, u32* vertex, u32* mark) {
  const i64 at = base + lane_id();
  *vertex = at < end ? block.indices[at] : 0;
  *mark = at < end ? block.marks[*vertex] : kMember;
  const bool valid = *mark < kMember && *vertex > block.shared->vertex[0] && (*mark & ((2u << list) - 1)) == 1u << list;
  return __ballot_sync(kAll, valid);
}

DEVICE u32 code_with(u32 code, int size, u32 mark) { return code | mark << (size * (size - 1) / 2); }

// Add a number to the orbit of one of the first kSize - 1 vertices.
DEVICE void add_orbit(Block& block, u32 code, u32 mask, int member, u32 vertex, u64 number) {
  if (!number) return;
  const u32 orbit = block.entries[(static_cast<u64>(code) << (kSize - 1) | mask) * (kSize - 1) + member];
  atomicAdd(&block.totals[orbit * block.num_vertices + vertex], number);
  block.estimate += static_cast<double>(number);
}

// Count the neighbours of the last members in a range of a row.
DEVICE void count_last(Block& block, int list, i64 begin, i64 end, u32 code) {
  Shared& shared = *block.shared;
  const int lane = lane_id(), warps = blockDim.x >> 5;
  const int part = (warp_in_block() + list) & (warps - 1);  // rows begin with different warps, since most are short
  for (i64 base = begin + 32 * part; base < end; base += 32 * warps) {
    if (stop_asked(block.stop)) return;  // rows of hubs, whose neighbours have long ones, take seconds
    u32 vertex, mark;
    u32 left = candidates(block, list, base, end, &vertex, &mark);
    const i64 row = left >> lane & 1 ? block.indptr[vertex] : 0;
    const i64 row_end = left >> lane & 1 ? block.indptr[vertex + 1] : 0;
    while (left) {
      const int i = __ffs(left) - 1;
      left &= left - 1;
      const u32 own = __shfl_sync(kAll, mark, i);
      u32 count[kPerLane] = {};
      tally<kPrefix, false>(block, __shfl_sync(kAll, row, i), __shfl_sync(kAll, row_end, i), 0, 1, count);
      if (lane == 0) atomicAdd(&shared.taken[own], 1u);
      for (int r = 0; r < kPerLane; ++r) {
        const u32 mask = lane + 32 * r;
        if (mask < kMasks && count[r]) atomicAdd(&shared.found[own * kMasks + mask], count[r]);
      }
      if (kPerVertex) {
        const u32 u = __shfl_sync(kAll, vertex, i);
        const u32 mask = lane;
        if (mask < kMasks) {
          const u32 all = code_with(code, kPrefix, own);
          add_orbit(block, all, mask | kMasks, kPrefix, u, count[0]);
          if (mask) add_orbit(block, all, mask, kPrefix, u, shared.known[kMasks + mask] - (mask == own) - count[0]);
        }
      }
    }
  }
}

// Add what was found above one prefix to the totals.
DEVICE void flush(Block& block, u32 code) {
  Shared& shared = *block.shared;
  __syncthreads();
  for (u32 own = 1 + warp_in_block(); own < kMasks; own += blockDim.x >> 5) {
    const u64 taken = shared.taken[own];
    if (!taken) continue;
    const u32 all = code_with(code, kPrefix, own);
    const u32 entry = kPerVertex ? 0 : block.entries[all];
    for (u32 mask = lane_id(); mask < kMasks; mask += 32) {
      const u64 with = shared.found[own * kMasks + mask];
      shared.found[own * kMasks + mask] = 0;
      const u64 without = mask ? taken * (shared.known[kMasks + mask] - (mask == own)) - with : 0;
      if (kPerVertex) {
        for (int member = 0; member < kPrefix; ++member) {
          add_orbit(block, all, mask | kMasks, member, shared.vertex[member], with);
          add_orbit(block, all, mask, member, shared.vertex[member], without);
        }
        continue;
      }
      u32 image = 0;
      for (int i = 0; i < kPrefix; ++i) image |= (mask >> i & 1) << (entry >> (10 + 3 * i) & 7);
      const u32 top = 1u << (entry >> (10 + 3 * kPrefix) & 7);
      u64* row = (kSharedTotals ? shared.totals : block.totals) + ((entry & 1023) << (kSize - 1));
      if (with) atomicAdd(&row[image | top], with);
      if (without) atomicAdd(&row[image], without);
      block.estimate += static_cast<double>(with) + static_cast<double>(taken) * shared.known[kMasks + mask];
    }
  }
  __syncthreads();
  for (int mask = threadIdx.x; mask < kMasks; mask += blockDim.x) shared.taken[mask] = 0;
  __syncthreads();
}

// Donate the set of the first D members and v to a block that waits; false if no block does. The next member stands in the
// row of member `list`, from `position` on, or in a later row. For all threads of a block.
template <int D>
DEVICE bool give(Block& block, u32 v, int list, i64 position) {
  Shared& shared = *block.shared;
  if (warp_in_block() == 0) {
    Control* control = block.control;
    const int lane = lane_id();
    u32 given = 0;
    if (lane == 0) {
      const u32 permits = load_volatile(&control->permits);
      given = permits && atomicCAS(&control->permits, permits, permits - 1) == permits;
      if (given) atomicAdd(&control->busy, 1u);
    }
    given = __shfl_sync(kAll, given, 0);
    u32 receiver = shared.receiver;
    for (u32 taken = !given; !taken;) {
      const u32 other = (receiver + 1 + lane) % gridDim.x;
      u32 open = __ballot_sync(kAll, load_volatile(&block.slots[other].state) == kOpen);
      while (open && !taken) {
        receiver = __shfl_sync(kAll, other, __ffs(open) - 1);
        open &= open - 1;
        if (lane == 0) taken = atomicCAS(&block.slots[receiver].state, kOpen, kClaimed) == kOpen;
        taken = __shfl_sync(kAll, taken, 0);
      }
      if (!taken) receiver = (receiver + 32) % gridDim.x;
    }
    if (lane == 0) {
      if (given) {
        Slot* slot = &block.slots[receiver];
        for (int i = 0; i < D; ++i) slot->members[i] = shared.vertex[i];
        slot->members[D] = v;
        slot->list = list;
        slot->offset = static_cast<u32>(position - shared.begin[list]);
        __threadfence();
        atomicExch(&slot->state, kFilled);
        shared.receiver = receiver;
      }
      shared.given = given;
    }
  }
  __syncthreads();
  const bool given = shared.given;
  __syncthreads();
  return given;
}

// Wait for a donated set, by a warp; false if no block is busy any more.
DEVICE bool await(Block& block) {
  u32 got = 0;
  if (lane_id() == 0) {
    Control* control = block.control;
    u32* state = &block.slots[blockIdx.x].state;
    atomicExch(state, kOpen);
    __threadfence();
    atomicAdd(&control->permits, 1u);
    __threadfence();
    atomicSub(&control->busy, 1u);
    for (u32 nap = 32; !load_volatile(block.stop); nap = min(2 * nap, kLongestNap)) {
      got = load_volatile(state) == kFilled;
      // A block that donates is busy, and makes the receiver busy first: none is missed.
      if (got || !load_volatile(&control->busy)) break;
      __nanosleep(nap);
    }
    __threadfence();
  }
  return __shfl_sync(kAll, got, 0);
}

template <int D>
DEVICE void extend(Block& block, int list, i64 begin, i64 end, u32 code);

// Enumerate below the first D members: the next one stands in a row from `list` on, in that one from `begin` on.
template <int D>
DEVICE void descend(Block& block, int list, i64 begin, u32 code) {
  const Shared& shared = *block.shared;
  for (int i = list; i < D; ++i) extend<D>(block, i, i == list ? begin : shared.begin[i], shared.end[i], code);
  if (D == kPrefix) flush(block, code);
}

// Enumerate below the first D members: the next one stands in a range of one row.
template <int D>
DEVICE void extend(Block& block, int list, i64 begin, i64 end, u32 code) {
  if constexpr (D == kPrefix) {
    count_last(block, list, begin, end, code);
  } else {
    for (i64 base = begin; base < end; base += 32) {
      u32 vertex, mark;
      u32 left = candidates(block, list, base, end, &vertex, &mark);
      while (left) {
        const int i = __ffs(left) - 1;
        left &= left - 1;
        const u32 v = __shfl_sync(kAll, vertex, i);
        if constexpr (D + 1 == kGiven) {
          if (block.shared->wanted && give<D>(block, v, list, base + i + 1)) continue;
        }
        push<D>(block, v);
        // Every thread reads the flag between the same barriers.
        if (block.shared->stopped) {
          pop<D>(block);
          return;
        }
        descend<D + 1>(block, list, base + i + 1, code_with(code, D, __shfl_sync(kAll, mark, i)));
        pop<D>(block);
      }
    }
  }
}

// Enumerate below the set that was donated to this block; its first D members are pushed.
template <int D>
DEVICE void receive(Block& block, u32 code) {
  const volatile Slot& slot = block.slots[blockIdx.x];
  if constexpr (kGiven == 0) {
    return;
  } else if constexpr (D == kGiven) {
    const int list = slot.list;
    descend<D>(block, list, block.shared->begin[list] + slot.offset, code);
  } else {
    const u32 v = slot.members[D], mark = block.marks[v];
    push<D>(block, v);
    receive<D + 1>(block, code_with(code, D, mark));
    pop<D>(block);
  }
}

// The candidates for the member after those of a job: positions in the first row from `begin` on, then in the second.
struct Span {
  i64 begin, length, second, second_length;
};

DEVICE Span span_of(const Block& block, i64 first, i64 last, u32 root, u32 owner) {
  const i64 end = block.indptr[owner + 1];
  if (kRoots == 1) {
    const i64 begin = max(block.split[owner], first);
    return {begin, max(min(end, last) - begin, i64(0)), 0, 0};
  }
  const i64 arc = first + root;
  if (arc < block.split[owner]) return {0, 0, 0, 0};
  const u32 second = block.indices[arc];
  return {arc + 1, end - arc - 1, block.indptr[second], block.indptr[second + 1] - block.indptr[second]};
}

DEVICE u32 chunks_of(const Span& span) {
  return static_cast<u32>((span.length + span.second_length + kChunk - 1) / kChunk);
}

DEVICE u32 owner_of(const Block& block, i64 first, u32 root, i64 first_vertex) {
  if (kRoots == 1) return static_cast<u32>(first_vertex + root);
  return static_cast<u32>(lower_bound(block.indptr, block.num_vertices + 1, first + root + 1) - 1);
}

// What a block's first warp knows of the work; the same in all its lanes.
struct Roots {
  i64 first, last, first_vertex;
  u32 number;     // of all roots
  u64* jobs;      // per block: the root of its job, and in the low half how many chunks of it were taken
  u32* sizes;     // per block: how many chunks its job has; a hint for the others
  u32 at, end;    // roots that this block has taken and not yet begun
  u32 owner;      // of the last one
  u32 job, size;  // the job, and its chunks
  u32 victim;     // whom to ask first
};

// Take a chunk; false where there is none left.
DEVICE bool take_chunk(const Block& block, Roots& roots) {
  Shared& shared = *block.shared;
  const int lane = lane_id();
  for (;;) {
    if (roots.size) {
      u32 chunk = 0;
      if (lane == 0) chunk = static_cast<u32>(atomicAdd(&roots.jobs[blockIdx.x], u64(1)));
      chunk = __shfl_sync(kAll, chunk, 0);
      if (chunk < roots.size) {
        if (lane == 0) shared.root = roots.job, shared.chunk = chunk, shared.owner = roots.owner;
        return true;
      }
      roots.size = 0;
    }
    if (roots.at == roots.end && roots.at < roots.number) {
      roots.at = min(take(&block.control->next, kRootsAtOnce), roots.number);
      roots.end = min(roots.at + kRootsAtOnce, roots.number);
      roots.owner = kNoRoot;
    }
    if (roots.at == roots.end) break;
    roots.job = roots.at++;
    if (kRoots == 1 || roots.owner == kNoRoot || roots.first + roots.job >= block.indptr[roots.owner + 1])
      roots.owner = owner_of(block, roots.first, roots.job, roots.first_vertex);
    roots.size = chunks_of(span_of(block, roots.first, roots.last, roots.job, roots.owner));
    if (roots.size && lane == 0) {
      roots.sizes[blockIdx.x] = roots.size;
      atomicExch(&roots.jobs[blockIdx.x], static_cast<u64>(roots.job) << 32);
    }
  }
  // No roots are left: help others with theirs.
  for (u32 seen = 0; seen < gridDim.x; seen += 32) {
    const u32 other = (roots.victim + seen + lane) % gridDim.x;
    const u64 word = load_volatile(&roots.jobs[other]);
    const bool open = word >> 32 != kNoRoot && static_cast<u32>(word) < load_volatile(&roots.sizes[other]);
    u32 hopeful = __ballot_sync(kAll, open);
    while (hopeful) {
      const u32 victim = __shfl_sync(kAll, other, __ffs(hopeful) - 1);
      hopeful &= hopeful - 1;
      u64 taken = 0;
      if (lane == 0) taken = atomicAdd(&roots.jobs[victim], u64(1));
      taken = __shfl_sync(kAll, taken, 0);
      const u32 root = static_cast<u32>(taken >> 32), chunk = static_cast<u32>(taken);
      const u32 owner = owner_of(block, roots.first, root, roots.first_vertex);
      if (chunk < chunks_of(span_of(block, roots.first, roots.last, root, owner))) {
        if (lane == 0) shared.root = root, shared.chunk = chunk, shared.owner = owner;
        roots.victim = victim;
        return true;
      }
    }
  }
  return false;
}

extern "C" __global__ void __launch_bounds__(256)
    count_motifs(const i64* indptr, const u32* indices, const i64* split, i64 num_vertices, const u32* entries,
                 i64 first, i64 last, u8* marks, u64* jobs, u32* sizes, Slot* slots, Control* control, const u32* stop,
                 u64* totals, u64* result) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared);
  Block block = {indptr, indices, split, num_vertices, entries, marks + blockIdx.x * num_vertices, totals,
                 control, slots, stop, &shared, 0};
  const VertexRange range = vertices_of_slots(indptr, num_vertices, first, last);
  const i64 number = kRoots == 1 ? range.end - range.begin : last - first;
  Roots roots = {first, last, range.begin, static_cast<u32>(number), jobs, sizes, 0, 0, 0, 0, 0, blockIdx.x};
  for (int i = threadIdx.x; i < kMasks * kMasks; i += blockDim.x) shared.found[i] = 0;
  for (int i = threadIdx.x; i < kMasks; i += blockDim.x) shared.taken[i] = 0;
  for (int i = threadIdx.x; kSharedTotals && i < kTotals; i += blockDim.x) shared.totals[i] = 0;
  if (threadIdx.x == 0) {
    shared.known[1] = num_vertices;
    shared.stopped = shared.wanted = 0;
    shared.receiver = blockIdx.x;
    if (kGiven) atomicAdd(&control->busy, 1u);
  }
  u32 root = kNoRoot, owner = kNoRoot;  // those whose members are pushed
  bool roots_left = true;
  __syncthreads();
  for (;;) {
    if (warp_in_block() == 0) {
      roots_left = roots_left && !stop_asked(stop) && take_chunk(block, roots);
      const bool received = kGiven && !roots_left && await(block);
      if (lane_id() == 0) {
        if (!roots_left) shared.root = kNoRoot;
        shared.given = received;
      }
    }
    __syncthreads();
    const u32 job = shared.root, chunk = shared.chunk, job_owner = shared.owner, received = shared.given;
    __syncthreads();
    if (job != root) {
      if (kRoots == 2 && root != kNoRoot) pop<1>(block);
      if (owner != kNoRoot && (job == kNoRoot || owner != job_owner)) {
        pop<0>(block);
        owner = kNoRoot;
      }
      if (job != kNoRoot) {
        if (owner == kNoRoot) push<0>(block, job_owner);
        if (kRoots == 2) push<1>(block, indices[first + job]);
        owner = job_owner;
      }
      root = job;
    }
    if (received) {
      receive<0>(block, 0);
      continue;
    }
    if (job == kNoRoot) break;
    const Span span = span_of(block, first, last, job, job_owner);
    const i64 begin = static_cast<i64>(chunk) * kChunk, end = min(begin + kChunk, span.length + span.second_length);
    const u32 code = kRoots == 2;
    if (begin < span.length) extend<kRoots>(block, 0, span.begin + begin, span.begin + min(end, span.length), code);
    if (end > span.length) {
      const i64 from = max(begin - span.length, i64(0));
      extend<kRoots>(block, 1, span.second + from, span.second + end - span.length, code);
    }
    if (kRoots == kPrefix) flush(block, code);
  }
  __syncthreads();
  for (int i = threadIdx.x; kSharedTotals && i < kTotals; i += blockDim.x)
    if (shared.totals[i]) atomicAdd(&totals[i], shared.totals[i]);
  add_result(result, 0, block.estimate);
}
