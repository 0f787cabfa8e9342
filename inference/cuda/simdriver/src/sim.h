// The device as kernels see it on the simulated driver: the same names as
// device.cuh, on the CPU. A kernel source is compiled as C++17 with RAGD_SIM defined.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))

struct uint3_ { unsigned x, y, z; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace sim {

// Thread is the running thread of a block; block and grid are shared by all.
struct Thread { uint3_ thread, block, block_dim, grid_dim; };
extern __thread Thread *now __attribute__((tls_model("initial-exec")));

enum Meeting { BARRIER = 1, SUM, MAX, GROUP_MAX, GROUP_SUM };

// barrier waits for all threads of the block; line tells apart where they wait.
void barrier(int line);
// meet gives a warp's 32 values to each of its lanes, which all have to come with
// the same kind. The values stay until the lane's next meeting.
const uint32_t *meet(Meeting kind, uint32_t value);
// shared finds a fixed shared array by its offset; reserve_shared gives out offsets.
void *shared(size_t offset);
size_t reserve_shared(size_t size);
void *dynamic_shared();

// Kernel is a kernel compiled for the host: its parameters and how to call it.
struct Kernel {
	const char *name;
	const size_t *sizes, *aligns;
	size_t count;
	void (*call)(const char *packed);
	Kernel *next;
};
extern Kernel *kernels;

template <class... A> struct Caller {
	static constexpr size_t count = sizeof...(A);
	static constexpr size_t sizes[] = {sizeof(A)...}, aligns[] = {alignof(A)...};

	template <void (*F)(A...), size_t... I> static void call(const char *packed, std::index_sequence<I...>) {
		size_t at[count];
		for (size_t i = 0, end = 0; i < count; end = at[i] + sizes[i], i++) at[i] = (end + aligns[i] - 1) / aligns[i] * aligns[i];
		F(*(const A *)(packed + at[I])...);
	}
};

template <auto F> struct Export;
template <class... A, void (*F)(A...)> struct Export<F> {
	Kernel kernel;
	explicit Export(const char *name) {
		kernel = {name, Caller<A...>::sizes, Caller<A...>::aligns, sizeof...(A), [](const char *p) { Caller<A...>::template call<F>(p, std::index_sequence_for<A...>()); }, kernels};
		kernels = &kernel;
	}
};

static inline float as_float(uint32_t v) { float f; memcpy(&f, &v, 4); return f; }
static inline uint32_t as_bits(float f) { uint32_t v; memcpy(&v, &f, 4); return v; }

} // namespace sim

#define EXPORT(name) static sim::Export<name> export_##name(#name);
#define SHARED(type, name, n)                                              \
	static const size_t name##_offset = sim::reserve_shared(sizeof(type[n])); \
	type(&name)[n] = *(type(*)[n])sim::shared(name##_offset)
#define DYNAMIC_SHARED(type, name) type *name = (type *)sim::dynamic_shared()

#define threadIdx (sim::now->thread)
#define blockIdx (sim::now->block)
#define blockDim (sim::now->block_dim)
#define gridDim (sim::now->grid_dim)
#define __syncthreads() sim::barrier(__LINE__)

typedef unsigned short half_bits;

static inline float half_to_float(half_bits h) { return _cvtsh_ss(h); }
static inline half_bits float_to_half(float f) { return _cvtss_sh(f, 0); }
static inline float __uint_as_float(unsigned v) { return sim::as_float(v); }
static inline float __int_as_float(int v) { return sim::as_float(v); }
static inline unsigned __float_as_uint(float f) { return sim::as_bits(f); }

template <class T> static inline T max(T a, T b) { return a > b ? a : b; }
template <class T> static inline T min(T a, T b) { return a < b ? a : b; }

static inline int dot16(uint4 a, uint4 b) {
	__m256i x = _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)&a)), y = _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)&b));
	__m256i p = _mm256_madd_epi16(x, y);
	__m128i s = _mm_add_epi32(_mm256_castsi256_si128(p), _mm256_extracti128_si256(p, 1));
	s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
	s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
	return _mm_cvtsi128_si32(s);
}

// One meeting instead of the butterfly of shuffles, with the same bits: level by
// level, the lower half of what is left plus the upper half.
static inline float warp_sum(float v) {
	const uint32_t *slots = sim::meet(sim::SUM, sim::as_bits(v));
	float t[32];
	memcpy(t, slots, sizeof t);
	for (int d = 16; d > 0; d /= 2)
		for (int i = 0; i < d; i++) t[i] += t[i + d];
	return t[0];
}

static inline float warp_max(float v) {
	const uint32_t *slots = sim::meet(sim::MAX, sim::as_bits(v));
	float top = v;
	for (int i = 0; i < 32; i++) top = fmaxf(top, sim::as_float(slots[i]));
	return top;
}

static inline unsigned group_max(unsigned v) {
	const uint32_t *slots = sim::meet(sim::GROUP_MAX, v) + threadIdx.x % 32 / 8 * 8;
	for (int i = 0; i < 8; i++) v = max(v, slots[i]);
	return v;
}

static inline int group_sum(int v) {
	const uint32_t *slots = sim::meet(sim::GROUP_SUM, (uint32_t)v) + threadIdx.x % 32 / 8 * 8;
	int sum = 0;
	for (int i = 0; i < 8; i++) sum += (int)slots[i];
	return sum;
}
