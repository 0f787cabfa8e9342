// Activations in half precision, as the products of half.cu read them. Columns go by
// spans of 256. A span of a row is scaled by a power of two that brings its largest
// value to [2^14, 2^15): rounding to f16 then costs every value at most 2^-12 of itself,
// and those under 2^-29 of the largest at most 2^-40 of the largest; nothing overflows.
//
// Rows lie in tiles of eight, so that a lane's part of a B fragment is 16 bytes and a
// warp's are 512 in a row. A round is 128 columns: 32 for each of the four lanes of a
// group. Of a tile, a round is four times 32 lanes, eight columns a lane:
//
//	x      [row / 8][round][columns % 32 / 8][row % 8][columns % 128 / 32][8]
//	scale  [row / 8][span][row % 8]
//
// The eight columns lie in the order 0, 2, 1, 3, 4, 6, 5, 7, which suits codes (half.cu).
// What lies beyond a row's last column is 0.
#pragma once

#include "device.cuh"

static const int span_columns = 256, round_columns = 128;

struct Halves {
	uint2 *x; // four columns
	float *scale;
};

// two_halves is two values as f16 in a word.
static __device__ __forceinline__ unsigned two_halves(float low, float high) { return float_to_half(low) | (unsigned)float_to_half(high) << 16; }

// emit_halves writes columns [from, to) of row r; from is a multiple of 256, and to, too,
// or the width. A warp takes a span, eight columns a lane; all threads of the block take
// part. A span with an infinity or NaN gets an infinite scale and values of 0, so that
// every product shows it.
template <class F> static __device__ __forceinline__ void emit_halves(const Halves &out, int row, int width, int from, int to, F f) {
	int lane = threadIdx.x % 32, spans = (width + span_columns - 1) / span_columns;
	for (int s = from / span_columns + threadIdx.x / 32; s * span_columns < to; s += blockDim.x / 32) {
		float v[2][4], top = 0.0f;
		for (int i = 0; i < 8; i++) {
			int c = s * span_columns + i / 4 * round_columns + 4 * lane + i % 4;
			float x = v[i / 4][i % 4] = c < width ? f(c) : 0.0f;
			unsigned bits = __float_as_uint(x) & 0x7fffffffu;
			top = fmaxf(top, __uint_as_float(min(bits, 0x7f800000u)));
		}
		top = warp_max(top);
		bool finite = __float_as_uint(top) < 0x7f800000u;
		// The powers of two are made of the exponent of the largest value; under 2^-112
		// they would not be normal.
		unsigned e = max(__float_as_uint(top) >> 23, 15u);
		float by = finite ? __uint_as_float((268 - e) << 23) : 0.0f;
		for (int half = 0; half < 2; half++) {
			for (int i = 0; i < 4; i++) v[half][i] = finite ? v[half][i] * by : 0.0f;
			uint2 word = {two_halves(v[half][0], v[half][2]), two_halves(v[half][1], v[half][3])};
			size_t round = (size_t)(row / 8) * 2 * spans + 2 * s + half;
			out.x[((4 * round + lane % 8 / 2) * 32 + row % 8 * 4 + lane / 8) * 2 + lane % 2] = word;
		}
		if (lane == 0) out.scale[((size_t)(row / 8) * spans + s) * 8 + row % 8] = finite ? __uint_as_float((e - 14) << 23) : top;
	}
}
