// Products of a weight matrix with rows of activations. A warp computes one weight
// row for up to COLUMNS rows of activations; its lanes take the blocks of 32 columns
// in turn and are summed as lane_sum does. That order is the same for any number of
// rows, so a result does not depend on what else is in the batch; many rows are tiles
// along y, or go to tensor cores (tensor.cu), in the same order.
#include "format.cuh"
#include "output.cuh"

static const int warps = 4; // weight rows of a block

// finish sums the lanes; lane c stores column c.
template <int COLUMNS> static __device__ __forceinline__ void finish(const float (&acc)[COLUMNS], const Output &o, int row, int first, int n) {
	int lane = threadIdx.x % 32;
	float mine = 0;
#pragma unroll
	for (int c = 0; c < COLUMNS; c++) {
		float v = first + c < n ? lane_sum(acc[c]) : 0.0f;
		if (lane == c) mine = v;
	}
	if (lane < COLUMNS && first + lane < n) o.put(first + lane, row, mine);
}

// multiply reads int8 activations; n rows of them are there.
template <class F, int COLUMNS> static __device__ __forceinline__ void multiply(const Weights &w, const uint4 *q, const float *qd, const float *qs, const Output &o, int rows, int cols, int n) {
	int row = blockIdx.x * warps + threadIdx.x / 32, lane = threadIdx.x % 32;
	if (row >= rows) return;
	int first = blockIdx.y * COLUMNS, blocks = cols / 32;
	float acc[COLUMNS] = {};
#pragma unroll 1
	for (int b = lane; b < blocks; b += 32) {
		size_t block = (size_t)row * blocks + b;
		uint4 lo, hi;
		F::codes(w, block, lo, hi);
		Scale k = F::scale(w, block);
#pragma unroll
		for (int c = 0; c < COLUMNS; c++) {
			if (first + c >= n) break;
			size_t at = (size_t)(first + c) * blocks + b;
			int dot = dot16(lo, q[2 * at]) * k.s0 + dot16(hi, q[2 * at + 1]) * k.s1;
			acc[c] = fmaf((float)dot, k.d * qd[at], acc[c]);
			acc[c] = fmaf(k.min, qs[at], acc[c]);
		}
	}
	finish(acc, o, row, first, n);
}

// multiply_plain reads float32 activations.
template <class F, int COLUMNS> static __device__ __forceinline__ void multiply_plain(const Weights &w, const float *x, const Output &o, int rows, int cols, int n) {
	int row = blockIdx.x * warps + threadIdx.x / 32, lane = threadIdx.x % 32;
	if (row >= rows) return;
	int first = blockIdx.y * COLUMNS;
	float acc[COLUMNS] = {};
#pragma unroll 1
	for (int i = lane; i < cols; i += 32) {
		float v = F::value(w, row, i, cols);
#pragma unroll
		for (int c = 0; c < COLUMNS; c++) {
			if (first + c < n) acc[c] = fmaf(v, x[(size_t)(first + c) * cols + i], acc[c]);
		}
	}
	finish(acc, o, row, first, n);
}

#define PRODUCT(name, format, columns)                                                                                                            \
	extern "C" __global__ void product_##name##_##columns(WEIGHTS_PARAMS, const uint4 *q, const float *qd, const float *qs, OUTPUT_PARAMS) {       \
		Weights w = WEIGHTS;                                                                                                                       \
		Output o = {bias, out, sum, stride};                                                                                                       \
		multiply<format, columns>(w, q, qd, qs, o, rows, cols, n);                                                                                 \
	}                                                                                                                                              \
	EXPORT(product_##name##_##columns)

#define PLAIN_PRODUCT(name, format, columns)                                                                                                      \
	extern "C" __global__ void product_##name##_##columns(WEIGHTS_PARAMS, const float *x, OUTPUT_PARAMS) {                                         \
		Weights w = WEIGHTS;                                                                                                                       \
		Output o = {bias, out, sum, stride};                                                                                                       \
		multiply_plain<format, columns>(w, x, o, rows, cols, n);                                                                                   \
	}                                                                                                                                              \
	EXPORT(product_##name##_##columns)

#define PRODUCTS(macro, name, format) macro(name, format, 1) macro(name, format, 4) macro(name, format, 8)

PRODUCTS(PLAIN_PRODUCT, f32, PlainF32)
PRODUCTS(PLAIN_PRODUCT, f16, PlainF16)
PRODUCTS(PLAIN_PRODUCT, bf16, PlainBF16)
PRODUCTS(PRODUCT, q4_0, Q4_0)
PRODUCTS(PRODUCT, q4_1, Q4_1)
PRODUCTS(PRODUCT, q8_0, Q8_0)
PRODUCTS(PRODUCT, q5_1, Q5_1)
PRODUCTS(PRODUCT, q4_k, Q4_K)
PRODUCTS(PRODUCT, q5_k, Q5_K)
PRODUCTS(PRODUCT, q6_k, Q6_K)
