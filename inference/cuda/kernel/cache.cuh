// The paged cache: a block of one layer and head holds 16 positions that follow each
// other, keys and values in halves of their own. A row is one position of one head.
#pragma once

#include "quantize.cuh"

static const int cache_block = 16;

// row_of is the number of a row.
static __device__ __forceinline__ size_t row_of(size_t block, int place, int head, int kvheads) {
	return (block * kvheads + head) * cache_block + place;
}

// HalfRows keeps values in half precision.
struct HalfRows {
	half_bits *x;

	// store writes a row; the warp does it together.
	__device__ __forceinline__ void store(size_t row, const float *v, int dim) const {
		for (int i = threadIdx.x; i < dim; i += 32) x[row * dim + i] = float_to_half(v[i]);
	}

	__device__ __forceinline__ float value(size_t row, int e, int dim) const { return half_to_float(x[row * dim + e]); }

	// dots adds the products of a row with four queries, which lie stride apart at each
	// dimension.
	__device__ __forceinline__ void dots(float (&s)[4], size_t row, const float *q, int stride, int dim) const {
		const half_bits *at = x + row * dim;
		int e = 0;
		for (; dim % 8 == 0 && e < dim; e += 8) {
			uint4 v = *(const uint4 *)(at + e);
			const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
			for (int j = 0; j < 8; j++) {
				float k = half_to_float((half_bits)(words[j / 2] >> (j % 2 * 16)));
				for (int i = 0; i < 4; i++) s[i] = fmaf(q[(e + j) * stride + i], k, s[i]);
			}
		}
		for (; e < dim; e++) {
			float k = half_to_float(at[e]);
			for (int i = 0; i < 4; i++) s[i] = fmaf(q[e * stride + i], k, s[i]);
		}
	}
};

// load_four reads four values of a row in each lane of a group of eight that has a block
// of 32, and gives all of them the block's largest magnitude, as bits.
static __device__ __forceinline__ unsigned load_four(float (&x)[4], const float *v, bool inside) {
	unsigned top = 0;
	for (int i = 0; i < 4; i++) {
		x[i] = inside ? v[4 * (threadIdx.x % 8) + i] : 0.0f;
		top = max(top, magnitude(x[i]));
	}
	return group_max(top);
}

// ByteRows keeps values as ggml's q8_0 does: int8 codes in blocks of 32 and a scale in
// half precision for each. Codes and scales are planes of their own.
struct ByteRows {
	typedef half_bits Scale;
	signed char *codes;
	half_bits *d;

	// store rounds halves away from zero, as quant.Encode does. A block with an infinity or
	// NaN gets such a scale, so that every score shows it.
	__device__ __forceinline__ void store(size_t row, const float *v, int dim) const {
		int part = threadIdx.x % 8;
		for (int base = 0; base < dim / 32; base += 4) {
			int block = base + threadIdx.x / 8;
			bool inside = block < dim / 32;
			float x[4];
			unsigned top = load_four(x, v + 32 * block, inside);
			float scale = __uint_as_float(top) / 127.0f, inverse = 0.0f;
			if (top > 0 && top < 0x7f800000u) inverse = 1.0f / scale;
			if (!inside) continue;
			unsigned word = 0;
			for (int i = 0; i < 4; i++) {
				int code = inverse != 0.0f ? (int)fminf(fmaxf(roundf(x[i] * inverse), -128.0f), 127.0f) : 0;
				word |= (unsigned)(code & 255) << (8 * i);
			}
			((unsigned *)(codes + row * dim + 32 * block))[part] = word;
			if (part == 0) d[row * (dim / 32) + block] = float_to_half(scale);
		}
	}

	static __device__ __forceinline__ float scale_of(half_bits d) { return half_to_float(d); }
	static __device__ __forceinline__ float code_of(unsigned byte) { return (float)(signed char)byte; }
};

// Fp8Rows keeps values as quant.FP8 does: e4m3 codes in blocks of 32 and the exponent of
// a power of two for each. Devices before 8.9 have no conversions for them, and these are
// as short: the bits of a code are those of a number in half precision, 2^8 smaller.
struct Fp8Rows {
	typedef unsigned char Scale;
	signed char *codes;
	unsigned char *d;

	// code rounds a value within ±448 to the nearest code, halves to even.
	static __device__ __forceinline__ unsigned code(float v) {
		unsigned bits = magnitude(v), sign = __float_as_uint(v) >> 24 & 0x80u;
		// Under 2^-6 codes are 2^-9 apart.
		if (bits < 0x3c800000u) return sign | (unsigned)rintf(__uint_as_float(bits) * 512.0f);
		return sign | (((bits + 0x7ffffu + (bits >> 20 & 1u)) >> 20) - (120u << 3));
	}

	__device__ __forceinline__ void store(size_t row, const float *v, int dim) const {
		int part = threadIdx.x % 8;
		for (int base = 0; base < dim / 32; base += 4) {
			int block = base + threadIdx.x / 8;
			bool inside = block < dim / 32;
			float x[4];
			unsigned top = load_four(x, v + 32 * block, inside);
			if (!inside) continue;
			// 0x600000 is the fraction of 448.
			int e = (int)(top >> 23) - 8 + ((top & 0x7fffffu) > 0x600000u ? 1 : 0);
			bool broken = top >= 0x7f800000u;
			e = broken ? 255 : max(e, 0);
			// 2^(127 - e) in two factors, each of which is a normal number.
			float half = __uint_as_float((unsigned)(190 - e / 2) << 23), rest = __uint_as_float((unsigned)(191 - (e + 1) / 2) << 23);
			unsigned word = 0;
			for (int i = 0; i < 4; i++) word |= broken ? 0u : code(x[i] * half * rest) << (8 * i);
			((unsigned *)(codes + row * dim + 32 * block))[part] = word;
			if (part == 0) d[row * (dim / 32) + block] = (unsigned char)e;
		}
	}

	// scale_of includes the 2^8; blocks that would overflow with it are beyond what
	// attention could multiply.
	static __device__ __forceinline__ float scale_of(unsigned char e) { return __uint_as_float(e == 255 ? 0x7fc00000u : ((unsigned)e + 8) << 23); }
	static __device__ __forceinline__ float code_of(unsigned byte) { return half_to_float((half_bits)((byte & 0x80u) << 8 | (byte & 0x7fu) << 7)); }
};

// CodedRows reads what Rows stores.
template <class Rows> struct CodedRows : Rows {
	__device__ __forceinline__ CodedRows(signed char *codes, typename Rows::Scale *d) : Rows{codes, d} {}

	__device__ __forceinline__ float value(size_t row, int e, int dim) const {
		return Rows::scale_of(this->d[row * (dim / 32) + e / 32]) * Rows::code_of(this->codes[row * dim + e]);
	}

	__device__ __forceinline__ void dots(float (&s)[4], size_t row, const float *q, int stride, int dim) const {
		const uint4 *at = (const uint4 *)(this->codes + row * dim);
		for (int e = 0; e < dim; e += 32) {
			float scale = Rows::scale_of(this->d[row * (dim / 32) + e / 32]);
#pragma unroll
			for (int h = 0; h < 2; h++) {
				uint4 v = at[e / 16 + h];
				const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
				for (int j = 0; j < 16; j++) {
					float k = scale * Rows::code_of(words[j / 4] >> (j % 4 * 8));
					for (int i = 0; i < 4; i++) s[i] = fmaf(q[(e + 16 * h + j) * stride + i], k, s[i]);
				}
			}
		}
	}
};

// The planes of keys and values as parameters of a kernel. They begin at the layer.
#define HALF_CACHE_PARAMS half_bits *keys, half_bits *values
#define HALF_KEYS {keys}
#define HALF_VALUES {values}
#define BYTE_CACHE_PARAMS signed char *keys, half_bits *kd, signed char *values, half_bits *vd
#define BYTE_KEYS {keys, kd}
#define BYTE_VALUES {values, vd}
#define FP8_CACHE_PARAMS signed char *keys, unsigned char *kd, signed char *values, unsigned char *vd
#define FP8_KEYS {keys, kd}
#define FP8_VALUES {values, vd}
