// Weights in device memory. A matrix is planes: the codes of all rows, then their
// scales. Codes are blocks of 32 columns, 16 bytes where a code has four bits (byte
// j: column j low, column j+16 high) and 32 where it has eight (signed). A block's
// value is d·s·code + min:
//
//	d     f16, one a block, or one for eight blocks where there are integer scales
//	s     integer scales: none (1), or one for every half of a block's columns
//	min   none, -8·d, m (f16, as d), or -m·ms with integer ms, one a block
//
// Everything is kept exactly as the file has it.
#pragma once

#include "device.cuh"

// Weights are the planes of a matrix; those a format lacks are not read.
struct Weights {
	const uint4 *codes;
	const half_bits *d, *m;
	const signed char *s;
	const unsigned char *ms;
};

// Scale is what the codes of a block mean; s0 is for its first 16 columns.
struct Scale {
	float d, min;
	int s0, s1;
};

enum Min { NO_MIN, MIN_OF_D, MIN_M };

// Format is a quantised format: bits of a code, the kind of min, and the number of
// integer scales of a block.
template <int BITS, int MIN, int SCALES> struct Format {
	static const int bits = BITS, scales = SCALES;

	static __device__ __forceinline__ Scale scale(const Weights &w, size_t block) {
		size_t header = SCALES ? block / 8 : block;
		Scale r = {half_to_float(w.d[header]), 0.0f, 1, 1};
		if (SCALES == 1) r.s0 = r.s1 = (unsigned char)w.s[block];
		if (SCALES == 2) {
			r.s0 = w.s[2 * block];
			r.s1 = w.s[2 * block + 1];
		}
		if (MIN == MIN_OF_D) r.min = -8.0f * r.d;
		if (MIN == MIN_M) r.min = SCALES ? -half_to_float(w.m[header]) * w.ms[block] : half_to_float(w.m[header]);
		return r;
	}

	// codes reads a block: columns 0 to 15 and 16 to 31.
	static __device__ __forceinline__ void codes(const Weights &w, size_t block, uint4 &lo, uint4 &hi) {
		if (BITS == 8) {
			lo = w.codes[2 * block];
			hi = w.codes[2 * block + 1];
			return;
		}
		uint4 c = w.codes[block];
		const unsigned low = 0x0f0f0f0fu;
		lo = make_uint4(c.x & low, c.y & low, c.z & low, c.w & low);
		hi = make_uint4(c.x >> 4 & low, c.y >> 4 & low, c.z >> 4 & low, c.w >> 4 & low);
	}

	// value is one weight; cols is the width of a row.
	static __device__ __forceinline__ float value(const Weights &w, size_t row, int col, int cols) {
		size_t block = row * (cols / 32) + col / 32;
		int j = col % 32, code;
		const signed char *bytes = (const signed char *)w.codes;
		if (BITS == 8) code = bytes[32 * block + j];
		else code = (unsigned char)bytes[16 * block + j % 16] >> (j / 16 * 4) & 15;
		Scale k = scale(w, block);
		return k.d * (float)(code * (j < 16 ? k.s0 : k.s1)) + k.min;
	}
};

// Plain formats keep one value after the other.
struct PlainF32 {
	static __device__ __forceinline__ float value(const Weights &w, size_t row, int col, int cols) { return ((const float *)w.codes)[row * cols + col]; }
};
struct PlainF16 {
	static __device__ __forceinline__ float value(const Weights &w, size_t row, int col, int cols) { return half_to_float(((const half_bits *)w.codes)[row * cols + col]); }
};
struct PlainBF16 {
	static __device__ __forceinline__ float value(const Weights &w, size_t row, int col, int cols) { return bf16_to_float(((const half_bits *)w.codes)[row * cols + col]); }
};

typedef Format<4, MIN_OF_D, 0> Q4_0;
typedef Format<4, MIN_M, 0> Q4_1;
typedef Format<8, NO_MIN, 0> Q8_0; // and Q5_0, whose codes lie in -16 to 15
typedef Format<8, MIN_M, 0> Q5_1;
typedef Format<4, MIN_M, 1> Q4_K;
typedef Format<8, MIN_M, 1> Q5_K;
typedef Format<8, NO_MIN, 2> Q6_K;

#define WEIGHTS_PARAMS const uint4 *codes, const half_bits *d, const half_bits *m, const signed char *s, const unsigned char *ms
#define WEIGHTS {codes, d, m, s, ms}
