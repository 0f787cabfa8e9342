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
#define __launch_bounds__(...)

struct uint3_ { unsigned x, y, z; };
struct alignas(8) int2 { int x, y; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace sim {

// Thread is the running thread of a block; block and grid are shared by all.
struct Thread { uint3_ thread, block, block_dim, grid_dim; };
extern __thread Thread *now __attribute__((tls_model("initial-exec")));

enum Meeting { BARRIER = 1, SUM, LANE_SUM, MAX, QUAD_MAX, GROUP_MAX, GROUP_SUM, MMA_K32, MMA_K16, MMA_HALF, LOAD, LOAD_TRANSPOSED };

// barrier waits for all threads of the block; line tells apart where they wait.
void barrier(int line);
// meet gives a warp's 32 values to each of its lanes, which all have to come with
// the same kind. The values stay until the lane's next meeting.
const uint32_t *meet(Meeting kind, uint32_t value);
// Words is what a lane brings to a meeting of more than one value.
typedef uint32_t Words[6];
// meet_words is meet for count words a lane.
const Words *meet_words(Meeting kind, const uint32_t *words, size_t count);
// Product is what a warp's meeting computes once for all lanes: 16 rows of 8 columns.
typedef float Product[16 * 8];
// meet_product is meet_words of which the last lane to come computes the product.
const float *meet_product(Meeting kind, const uint32_t *words, size_t count, void (*compute)(const Words *all, Product &product));
// copy_async, copies_end and copies_wait_but are asynchronous copies of 16 bytes to shared
// memory: until the thread waits for its group, what is copied to is NaN.
void copy_async(void *to, const void *from);
void copies_end();
void copies_wait_but(unsigned groups);
// in_shared fails unless p is 16 bytes of shared memory, at a multiple of 16.
void in_shared(const void *p);
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

// total adds eight integers.
static inline int total(__m256i p) {
	__m128i s = _mm_add_epi32(_mm256_castsi256_si128(p), _mm256_extracti128_si256(p, 1));
	s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
	s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
	return _mm_cvtsi128_si32(s);
}

static inline int dot16(uint4 a, uint4 b) {
	__m256i x = _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)&a)), y = _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)&b));
	return total(_mm256_madd_epi16(x, y));
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

// lane_sum has the bits of the device's.
static inline float lane_sum(float v) {
	const uint32_t *slots = sim::meet(sim::LANE_SUM, sim::as_bits(v));
	float t[8];
	for (int i = 0; i < 8; i++) t[i] = ((sim::as_float(slots[i]) + sim::as_float(slots[i + 8])) + sim::as_float(slots[i + 16])) + sim::as_float(slots[i + 24]);
	for (int d = 4; d > 0; d /= 2)
		for (int i = 0; i < d; i++) t[i] += t[i + d];
	return t[0];
}

// The tensor cores. Every lane shows its fragments to the others and computes its own
// four sums. Where an element lies is as the PTX ISA has it ("Matrix Fragments for
// mma.m16n8k16" and "mma.m16n8k32" for .s8): with group = lane/4 and t = lane%4,
//
//	A  rows group (a0, a2) and group + 8 (a1, a3), columns 4t to 4t+3 (a0, a1) and those
//	   16 further (a2, a3; not for k16)
//	B  column group, rows 4t to 4t+3 (b0) and those 16 further (b1; not for k16)
//	C  rows group (c0, c1) and group + 8 (c2, c3), columns 2t (c0, c2) and 2t+1 (c1, c3)
namespace sim {

// gather is 16 bytes of a row of A or a column of B, as 16-bit integers: word says which
// of the words of the four lanes has them.
static inline __m256i gather(const Words *lanes, int group, int word) {
	alignas(16) uint32_t v[4];
	for (int t = 0; t < 4; t++) v[t] = lanes[4 * group + t][word];
	return _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)v));
}

// mma adds to c; a lane's words are A's (two for each half of the columns), then B's.
static inline void mma(int (&c)[4], const Words *lanes, int lane, int halves) {
	int group = lane / 4, t = lane % 4;
	for (int half = 0; half < halves; half++) {
		__m256i rows[2], columns[2];
		for (int i = 0; i < 2; i++) {
			rows[i] = gather(lanes, group, 2 * half + i);
			columns[i] = gather(lanes, 2 * t + i, 2 * halves + half);
		}
		for (int i = 0; i < 4; i++) c[i] += total(_mm256_madd_epi16(rows[i / 2], columns[i % 2]));
	}
}

} // namespace sim

static inline void mma_k32(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
	const uint32_t words[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
	sim::mma(c, sim::meet_words(sim::MMA_K32, words, 6), threadIdx.x % 32, 2);
}

static inline void mma_k16(int (&c)[4], unsigned a0, unsigned a1, unsigned b) {
	const uint32_t words[3] = {a0, a1, b};
	sim::mma(c, sim::meet_words(sim::MMA_K16, words, 3), threadIdx.x % 32, 1);
}

// Halves: two values a word, and those of eight words.
namespace sim {

static inline __m256 low_halves(__m256i words) {
	__m256i low = _mm256_and_si256(words, _mm256_set1_epi32(0xffff));
	return _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)));
}

static inline __m256 high_halves(__m256i words) { return low_halves(_mm256_srli_epi32(words, 16)); }

// multiply_halves is the product of a warp's fragments ("Matrix Fragments for mma.m16n8k16
// with floating point type"), a lane's words being A's (a0 to a3), then B's (b0, b1):
//
//	A  rows group (a0, a2) and group + 8 (a1, a3), columns 2t, 2t+1 (a0, a1) and those 8
//	   further (a2, a3)
//	B  column group, rows 2t, 2t+1 (b0) and those 8 further (b1)
//
// C is as above. Products are exact; a sum's order is that of the columns, which a device
// does not promise.
static inline void multiply_halves(const Words *lanes, Product &product) {
	float a[16][16];
	__m256 b[16];
	for (int t = 0; t < 4; t++)
		for (int word = 0; word < 6; word++) {
			alignas(32) uint32_t v[8];
			for (int group = 0; group < 8; group++) v[group] = lanes[4 * group + t][word];
			__m256i words = _mm256_load_si256((const __m256i *)v);
			__m256 low = low_halves(words), high = high_halves(words);
			if (word >= 4) {
				b[8 * (word - 4) + 2 * t] = low;
				b[8 * (word - 4) + 2 * t + 1] = high;
				continue;
			}
			alignas(32) float x[2][8];
			_mm256_store_ps(x[0], low);
			_mm256_store_ps(x[1], high);
			for (int i = 0; i < 16; i++) a[i % 8 + word % 2 * 8][word / 2 * 8 + 2 * t + i / 8] = x[i / 8][i % 8];
		}
	for (int row = 0; row < 16; row++) {
		__m256 sum = _mm256_setzero_ps();
		for (int k = 0; k < 16; k++) sum = _mm256_fmadd_ps(_mm256_set1_ps(a[row][k]), b[k], sum);
		_mm256_storeu_ps(product + 8 * row, sum);
	}
}

} // namespace sim

static inline void mma_half(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
	const uint32_t words[6] = {a[0], a[1], a[2], a[3], b0, b1};
	const float *product = sim::meet_product(sim::MMA_HALF, words, 6, sim::multiply_halves);
	int lane = threadIdx.x % 32;
	for (int i = 0; i < 4; i++) c[i] += product[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2];
}

static inline __m128 from_halves(unsigned v) { return _mm_cvtph_ps(_mm_cvtsi32_si128((int)v)); }
static inline unsigned to_halves(__m128 v) { return (unsigned)_mm_cvtsi128_si32(_mm_cvtps_ph(v, 0)); }
static inline unsigned sub_halves(unsigned a, unsigned b) { return to_halves(_mm_sub_ps(from_halves(a), from_halves(b))); }
// fma_halves rounds to f32 first, which changes a result in rare cases.
static inline unsigned fma_halves(unsigned a, unsigned b, unsigned c) { return to_halves(_mm_fmadd_ps(from_halves(a), from_halves(b), from_halves(c))); }

static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
	uint64_t bytes = (uint64_t)b << 32 | a;
	unsigned r = 0;
	for (int i = 0; i < 4; i++) r |= (unsigned)(bytes >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
	return r;
}

static inline unsigned pack_halves(float low, float high) { return float_to_half(low) | (unsigned)float_to_half(high) << 16; }

namespace sim {

// load shows the other lanes where a lane's row lies; matrix i's rows are those of lanes
// 8i and following.
static inline const Words *load(Meeting kind, const unsigned *row) {
	in_shared(row);
	uint64_t at = (uint64_t)row;
	const uint32_t words[2] = {(uint32_t)at, (uint32_t)(at >> 32)};
	return meet_words(kind, words, 2);
}

static inline const half_bits *row_of(const Words *lanes, int lane) { return (const half_bits *)(lanes[lane][0] | (uint64_t)lanes[lane][1] << 32); }

} // namespace sim

static inline void load_matrices(unsigned (&r)[4], const unsigned *row) {
	const sim::Words *lanes = sim::load(sim::LOAD, row);
	int lane = threadIdx.x % 32;
	for (int i = 0; i < 4; i++) memcpy(&r[i], sim::row_of(lanes, 8 * i + lane / 4) + lane % 4 * 2, 4);
}

static inline void load_transposed(unsigned (&r)[4], const unsigned *row) {
	const sim::Words *lanes = sim::load(sim::LOAD_TRANSPOSED, row);
	int lane = threadIdx.x % 32, from = lane % 4 * 2;
	for (int i = 0; i < 4; i++) r[i] = sim::row_of(lanes, 8 * i + from)[lane / 4] | (unsigned)sim::row_of(lanes, 8 * i + from + 1)[lane / 4] << 16;
}

static inline void copy_async(uint4 *to, const void *from) { sim::copy_async(to, from); }
static inline void copies_end() { sim::copies_end(); }
static inline void copies_wait_but_one() { sim::copies_wait_but(1); }

static inline float quad_max(float v) {
	const uint32_t *slots = sim::meet(sim::QUAD_MAX, sim::as_bits(v)) + threadIdx.x % 32 / 4 * 4;
	for (int i = 0; i < 4; i++) v = fmaxf(v, sim::as_float(slots[i]));
	return v;
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
