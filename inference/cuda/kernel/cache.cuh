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

// ByteRows keeps values as ggml's q8_0 does: int8 codes in blocks of 32 and a scale in
// half precision for each. Codes and scales are planes of their own.
struct ByteRows {
	signed char *codes;
	half_bits *d;

	// store rounds halves away from zero, as quant.Encode does. A block with an infinity or
	// NaN gets such a scale, so that every score shows it.
	__device__ __forceinline__ void store(size_t row, const float *v, int dim) const {
		int part = threadIdx.x % 8;
		for (int base = 0; base < dim / 32; base += 4) {
			int block = base + threadIdx.x / 8;
			bool inside = block < dim / 32;
			float x[4] = {0, 0, 0, 0};
			unsigned top = 0;
			for (int i = 0; i < 4 && inside; i++) {
				x[i] = v[32 * block + 4 * part + i];
				top = max(top, magnitude(x[i]));
			}
			top = group_max(top);
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

	__device__ __forceinline__ float value(size_t row, int e, int dim) const {
		return half_to_float(d[row * (dim / 32) + e / 32]) * (float)codes[row * dim + e];
	}

	__device__ __forceinline__ void dots(float (&s)[4], size_t row, const float *q, int stride, int dim) const {
		const uint4 *at = (const uint4 *)(codes + row * dim);
		for (int e = 0; e < dim; e += 32) {
			float scale = half_to_float(d[row * (dim / 32) + e / 32]);
#pragma unroll
			for (int h = 0; h < 2; h++) {
				uint4 v = at[e / 16 + h];
				const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
				for (int j = 0; j < 16; j++) {
					float k = scale * (float)(signed char)(words[j / 4] >> (j % 4 * 8));
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
