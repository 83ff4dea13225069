// CUDA C++ as far as the kernels use it, for g++: qualifiers, built-in variables and functions.
//
// Includes nothing of the standard library: kernels compile faster, and what NVRTC does not know is not there.
#pragma once
#include "interface.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__
#define EMULATOR_UNCHECKED __attribute__((no_sanitize("thread"), noinline))

#define threadIdx (emulator_thread_index())
#define blockIdx (emulator_block_index())
#define blockDim (emulator_block_size())
#define gridDim (emulator_grid_size())
constexpr int warpSize = 32;

using size_t = decltype(sizeof(0));

struct alignas(8) int2 { int x, y; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) longlong2 { long long x, y; };
struct alignas(16) ulonglong2 { unsigned long long x, y; };
inline int2 make_int2(int x, int y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

// --- static shared memory: the kernels' declarations are rewritten to calls of this -------------------------------

inline unsigned emulator_reserved = 0;

inline unsigned emulator_reserve(unsigned bytes) {
  const unsigned offset = (emulator_reserved + 15) & ~15u;
  emulator_reserved = offset + bytes;
  return offset;
}

template <typename T, int SITE>
struct StaticShared {
  static inline const unsigned offset = emulator_reserve(sizeof(T));
};

// --- numbers ------------------------------------------------------------------------------------------------------

#define EMULATOR_MINMAX(R, A, B)                                       \
  constexpr R min(A a, B b) { const R x = a, y = b; return x < y ? x : y; }      \
  constexpr R max(A a, B b) { const R x = a, y = b; return x > y ? x : y; }
EMULATOR_MINMAX(int, int, int)
EMULATOR_MINMAX(unsigned, unsigned, unsigned)
EMULATOR_MINMAX(unsigned, int, unsigned)
EMULATOR_MINMAX(unsigned, unsigned, int)
EMULATOR_MINMAX(long, long, long)
EMULATOR_MINMAX(unsigned long, unsigned long, unsigned long)
EMULATOR_MINMAX(long long, long long, long long)
EMULATOR_MINMAX(unsigned long long, unsigned long long, unsigned long long)
EMULATOR_MINMAX(unsigned long long, long long, unsigned long long)
EMULATOR_MINMAX(unsigned long long, unsigned long long, long long)
EMULATOR_MINMAX(float, float, float)
EMULATOR_MINMAX(double, double, double)

inline double fabs(double x) { return __builtin_fabs(x); }
inline float fabsf(float x) { return __builtin_fabsf(x); }
constexpr int abs(int x) { return x < 0 ? -x : x; }
constexpr long long llabs(long long x) { return x < 0 ? -x : x; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(static_cast<unsigned long long>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __brev(unsigned x) {
  unsigned turned = 0;
  for (int bit = 0; bit < 32; ++bit) turned |= (x >> bit & 1) << (31 - bit);
  return turned;
}
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }

// --- memory -------------------------------------------------------------------------------------------------------

template <typename T> inline T __ldg(const T* p) { return *p; }
template <typename T> inline T __ldca(const T* p) { return *p; }
template <typename T> inline T __ldcg(const T* p) { return *p; }
template <typename T> inline T __ldcs(const T* p) { return *p; }
template <typename T> inline T __ldcv(const T* p) { return *const_cast<const volatile T*>(p); }
template <typename T> inline void __stcg(T* p, T value) { *p = value; }
template <typename T> inline void __stcs(T* p, T value) { *p = value; }
template <typename T> inline void __stwt(T* p, T value) { *const_cast<volatile T*>(p) = value; }

inline void __threadfence_block() { asm volatile("" ::: "memory"); }
inline void __threadfence() { asm volatile("" ::: "memory"); }
inline void __threadfence_system() { __sync_synchronize(); }

template <typename T> struct EmulatorSame { using type = T; };

// All threads of a grid run on one thread of the host.
#define EMULATOR_ATOMIC(name, expression)                                              \
  template <typename T>                                                                \
  EMULATOR_UNCHECKED T name(T* word, typename EmulatorSame<T>::type value) {           \
    emulator_atomic(word, sizeof(T));                                                  \
    volatile T* at = word;                                                             \
    const T old = *at;                                                                 \
    *at = expression;                                                                  \
    return old;                                                                        \
  }                                                                                    \
  template <typename T>                                                                \
  inline T name##_block(T* word, typename EmulatorSame<T>::type value) {               \
    return name(word, value);                                                          \
  }
EMULATOR_ATOMIC(atomicAdd, old + value)
EMULATOR_ATOMIC(atomicSub, old - value)
EMULATOR_ATOMIC(atomicAnd, old & value)
EMULATOR_ATOMIC(atomicOr, old | value)
EMULATOR_ATOMIC(atomicXor, old ^ value)
EMULATOR_ATOMIC(atomicMin, value < old ? value : old)
EMULATOR_ATOMIC(atomicMax, value > old ? value : old)
EMULATOR_ATOMIC(atomicExch, value)
EMULATOR_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
EMULATOR_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)

template <typename T>
EMULATOR_UNCHECKED T atomicCAS(T* word, typename EmulatorSame<T>::type expected, typename EmulatorSame<T>::type value) {
  emulator_atomic(word, sizeof(T));
  volatile T* at = word;
  const T old = *at;
  if (old == expected) *at = value;
  return old;
}
template <typename T>
inline T atomicCAS_block(T* word, typename EmulatorSame<T>::type expected, typename EmulatorSame<T>::type value) {
  return atomicCAS(word, expected, value);
}

// --- collectives --------------------------------------------------------------------------------------------------

#define EMULATOR_LINE int line = __builtin_LINE()

template <typename T>
inline T emulator_shuffled(unsigned mask, T value, unsigned source, int line) {
  if constexpr (sizeof(T) < 4) {
    return static_cast<T>(emulator_shuffle(mask, static_cast<unsigned>(value), source, line));
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, static_cast<unsigned>(
        emulator_shuffle(mask, __builtin_bit_cast(unsigned, value), source, line)));
  } else {
    return __builtin_bit_cast(T, emulator_shuffle(mask, __builtin_bit_cast(unsigned long long, value), source, line));
  }
}

inline unsigned emulator_lane() { return threadIdx.x & 31; }

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, EMULATOR_LINE) {
  const unsigned lane = emulator_lane();
  return emulator_shuffled(mask, value, (lane & ~(width - 1u)) | (source & (width - 1u)), line);
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32, EMULATOR_LINE) {
  const unsigned lane = emulator_lane(), inside = (lane & (width - 1u)) + distance;
  return emulator_shuffled(mask, value, inside < unsigned(width) ? lane + distance : lane, line);
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32, EMULATOR_LINE) {
  const unsigned lane = emulator_lane();
  return emulator_shuffled(mask, value, (lane & (width - 1u)) >= distance ? lane - distance : lane, line);
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, EMULATOR_LINE) {
  const unsigned lane = emulator_lane(), other = lane ^ bits;
  return emulator_shuffled(mask, value, other / width <= lane / width ? other : lane, line);
}

inline unsigned __ballot_sync(unsigned mask, int value, EMULATOR_LINE) { return emulator_vote(mask, value, line); }
inline int __all_sync(unsigned mask, int value, EMULATOR_LINE) { return emulator_vote(mask, value, line) == ~0u; }
inline int __any_sync(unsigned mask, int value, EMULATOR_LINE) { return emulator_vote(mask, value, line) != 0; }

inline unsigned __reduce_add_sync(unsigned m, unsigned x, EMULATOR_LINE) { return emulator_reduce(m, x, ADD, line); }
inline unsigned __reduce_min_sync(unsigned m, unsigned x, EMULATOR_LINE) { return emulator_reduce(m, x, MIN, line); }
inline unsigned __reduce_max_sync(unsigned m, unsigned x, EMULATOR_LINE) { return emulator_reduce(m, x, MAX, line); }
inline int __reduce_add_sync(unsigned m, int x, EMULATOR_LINE) { return emulator_reduce(m, x, ADD, line); }
inline int __reduce_min_sync(unsigned m, int x, EMULATOR_LINE) { return emulator_reduce(m, x, SIGNED_MIN, line); }
inline int __reduce_max_sync(unsigned m, int x, EMULATOR_LINE) { return emulator_reduce(m, x, SIGNED_MAX, line); }
inline unsigned __reduce_and_sync(unsigned m, unsigned x, EMULATOR_LINE) { return emulator_reduce(m, x, AND, line); }
inline unsigned __reduce_or_sync(unsigned m, unsigned x, EMULATOR_LINE) { return emulator_reduce(m, x, OR, line); }
inline unsigned __reduce_xor_sync(unsigned m, unsigned x, EMULATOR_LINE) { return emulator_reduce(m, x, XOR, line); }

template <typename T>
inline unsigned __match_any_sync(unsigned mask, T value, EMULATOR_LINE) {
  if constexpr (sizeof(T) == 4) {
    return emulator_match(mask, __builtin_bit_cast(unsigned, value), line);
  } else {
    return emulator_match(mask, __builtin_bit_cast(unsigned long long, value), line);
  }
}

inline void __syncwarp(unsigned mask = ~0u, EMULATOR_LINE) { emulator_sync_warp(mask, line); }
inline void emulator_syncthreads(EMULATOR_LINE) { emulator_sync_block(false, line); }
#define __syncthreads() emulator_syncthreads()
inline int __syncthreads_count(int value, EMULATOR_LINE) { return emulator_sync_block(value, line); }
inline int __syncthreads_or(int value, EMULATOR_LINE) { return emulator_sync_block(value, line) != 0; }
inline int __syncthreads_and(int value, EMULATOR_LINE) { return emulator_sync_block(!value, line) == 0; }

inline void __nanosleep(unsigned nanoseconds) { emulator_sleep(nanoseconds); }
inline long long clock64() { return emulator_clock(); }
inline void __trap(EMULATOR_LINE) { emulator_trap(line); }

// --- launches -----------------------------------------------------------------------------------------------------

// A parameter in one number: minus the size of what a pointer points to, a number's size, 100 more for a float.
template <typename T> struct EmulatorParameter {
  static constexpr int code = sizeof(T) + (T(0.5) != T(0) ? 100 : 0);
};
template <> struct EmulatorParameter<bool> { static constexpr int code = 1; };
template <typename T> struct EmulatorParameter<T*> { static constexpr int code = -int(sizeof(T)); };
template <> struct EmulatorParameter<void*> { static constexpr int code = -1; };
template <> struct EmulatorParameter<const void*> { static constexpr int code = -1; };

template <int... I> struct EmulatorIndices {};
template <int N, int... I> struct EmulatorCount : EmulatorCount<N - 1, N - 1, I...> {};
template <int... I> struct EmulatorCount<0, I...> { using type = EmulatorIndices<I...>; };

template <typename... A, int... I>
EMULATOR_UNCHECKED void emulator_call(void (*kernel)(A...), void** arguments, EmulatorIndices<I...>) {
  kernel(*static_cast<A*>(arguments[I])...);
}
template <typename... A>
EMULATOR_UNCHECKED void emulator_call(void (*kernel)(A...), void** arguments) {
  emulator_call(kernel, arguments, typename EmulatorCount<sizeof...(A)>::type());
}
template <typename... A>
EMULATOR_UNCHECKED int emulator_describe(void (*)(A...), int* codes) {
  const int all[] = {EmulatorParameter<A>::code..., 0};
  for (unsigned i = 0; i < sizeof...(A); ++i) codes[i] = all[i];
  return sizeof...(A);
}

#define EMULATOR_EXPORT extern "C" __attribute__((visibility("default"), no_sanitize("thread")))
#define EMULATOR_KERNEL(name)                                                                        \
  EMULATOR_EXPORT void emulator_call_##name(void** arguments) { emulator_call(name, arguments); }    \
  EMULATOR_EXPORT int emulator_describe_##name(int* codes) { return emulator_describe(name, codes); }
EMULATOR_EXPORT unsigned emulator_static_bytes() { return emulator_reserved; }
