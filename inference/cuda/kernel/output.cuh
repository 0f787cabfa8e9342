// Where products go, and the order in which their parts are summed.
#pragma once

#include "device.cuh"

// Output is where a product goes: to out, and added to sum, where those are given.
struct Output {
	const float *bias;
	float *out, *sum;
	int stride;

	__device__ __forceinline__ void put(int column, int row, float v) const {
		if (bias) v += bias[row];
		size_t at = (size_t)column * stride + row;
		if (out) out[at] = v;
		if (sum) sum[at] += v;
	}
};

#define OUTPUT_PARAMS const float *bias, float *out, float *sum, int stride, int rows, int cols, int n

// Block b of a row belongs to lane b mod 32, and the lanes are summed as lane_sum
// does: lanes that are 8 apart one after the other, then these eight as a tree.
static const int lane_groups = 8;
