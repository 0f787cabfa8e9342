// Activations in blocks of 32: int8 codes clamped to ±127, a float32 scale and the
// scaled sum of the codes, as the host's kernels make them.
#pragma once

#include "half.cuh"

struct Acts {
	unsigned *q; // four codes a word
	float *d, *s;
};

static __device__ __forceinline__ unsigned magnitude(float v) { return __float_as_uint(v) & 0x7fffffffu; }

static __device__ __forceinline__ int round_code(float v) { return (int)fminf(fmaxf(rintf(v), -127.0f), 127.0f); }

// quantize stores a block of 32 values, four in each of eight lanes. All lanes of
// the warp take part; store says whether this lane's block exists. A block with an
// infinity or NaN gets such a scale and codes of 0, so that every product shows it.
static __device__ __forceinline__ void quantize(const Acts &a, size_t block, const float (&v)[4], bool store) {
	unsigned bits = max(max(magnitude(v[0]), magnitude(v[1])), max(magnitude(v[2]), magnitude(v[3])));
	bits = group_max(bits);
	float top = __uint_as_float(bits), inv = 0.0f;
	// Under 127/FLT_MAX the reciprocal overflows: such a block counts as zero.
	if (top > 3.7322e-37f && bits < 0x7f800000u) inv = 127.0f / top;
	int sum = 0;
	unsigned word = 0;
	for (int i = 0; i < 4; i++) {
		int code = inv != 0.0f ? round_code(v[i] * inv) : 0;
		sum += code;
		word |= (unsigned)(code & 255) << (8 * i);
	}
	sum = group_sum(sum);
	if (!store) return;
	int part = threadIdx.x % 8;
	a.q[8 * block + part] = word;
	if (part == 0) {
		a.d[block] = top / 127.0f;
		a.s[block] = top / 127.0f * (float)sum;
	}
}

// RowOut is where a row goes: as floats, quantised, in half precision, or several of them.
struct RowOut {
	float *floats;
	Acts acts;
	Halves halves;
};

// emit writes columns [from, to) of row r: f(column) is the value. All threads of
// the block take part.
template <class F> static __device__ __forceinline__ void emit(const RowOut &out, int row, int width, int from, int to, F f) {
	if (out.halves.x) emit_halves(out.halves, row, width, from, to, f);
	if (!out.acts.q) {
		if (!out.floats) return;
		for (int c = from + threadIdx.x; c < to; c += blockDim.x) out.floats[(size_t)row * width + c] = f(c);
		return;
	}
	int part = threadIdx.x % 8, groups = blockDim.x / 8;
	for (int base = from / 32; base < to / 32; base += groups) {
		int block = base + threadIdx.x / 8, c = 32 * block + 4 * part;
		bool inside = block < to / 32;
		float v[4] = {0, 0, 0, 0};
		for (int i = 0; i < 4 && inside; i++) {
			v[i] = f(c + i);
			if (out.floats) out.floats[(size_t)row * width + c + i] = v[i];
		}
		quantize(out.acts, (size_t)row * (width / 32) + block, v, inside);
	}
}
