// Kernels over rows of activations: one block, or a few, for each row.
#include "quantize.cuh"

// Normal is a norm of a row: RMSNorm with a gain, LayerNorm with a shift too.
struct Normal {
	const float *gain, *shift;
	float mean, r;

	__device__ __forceinline__ float operator()(const float *x, int c) const {
		if (!gain) return x[c];
		float v = (x[c] - mean) * r * gain[c];
		return shift ? v + shift[c] : v;
	}
};

static __device__ __forceinline__ Normal normal(const float *x, const float *gain, const float *shift, float eps, int width) {
	Normal n = {gain, shift, 0.0f, 1.0f};
	if (!gain) return n;
	if (shift) {
		float sum = 0;
		for (int c = threadIdx.x; c < width; c += blockDim.x) sum += x[c];
		n.mean = block_sum(sum) / width;
	}
	float square = 0;
	for (int c = threadIdx.x; c < width; c += blockDim.x) square = fmaf(x[c] - n.mean, x[c] - n.mean, square);
	n.r = 1.0f / sqrtf(block_sum(square) / width + eps);
	return n;
}

// norm_rows writes norm(x[index[row]]); without an index, of x[row]; without a gain,
// the row as it is. floats may be x when nothing is indexed.
extern "C" __global__ void norm_rows(float *floats, unsigned *q, float *qd, float *qs, uint2 *h, float *hs, const float *x, const int *index, const float *gain, const float *shift, float eps, int width) {
	int row = blockIdx.x;
	x += (size_t)(index ? index[row] : row) * width;
	Normal n = normal(x, gain, shift, eps, width);
	RowOut out = {floats, {q, qd, qs}, {h, hs}};
	emit(out, row, width, 0, width, [&](int c) { return n(x, c); });
}
EXPORT(norm_rows)

// add_norm_rows is x += norm(h).
extern "C" __global__ void add_norm_rows(float *x, const float *h, const float *gain, float eps, int width) {
	x += (size_t)blockIdx.x * width;
	h += (size_t)blockIdx.x * width;
	Normal n = normal(h, gain, 0, eps, width);
	for (int c = threadIdx.x; c < width; c += blockDim.x) x[c] += n(h, c);
}
EXPORT(add_norm_rows)

// rest_rows quantises what its codes left of x[index[row]], which lie as the quantised
// rows of x do.
extern "C" __global__ void rest_rows(unsigned *q, float *qd, float *qs, const float *x, const signed char *codes, const float *scales, const int *index, int width) {
	int row = blockIdx.x;
	size_t at = (size_t)index[row] * width;
	RowOut out = {0, {q, qd, qs}, {0, 0}};
	emit(out, row, width, 0, width, [&](int c) { return x[at + c] - (float)codes[at + c] * scales[(at + c) / 32]; });
}
EXPORT(rest_rows)

// add_rows is out[index[row]] += x[row].
extern "C" __global__ void add_rows(float *out, const float *x, const int *index, int width) {
	int row = blockIdx.x, c = blockIdx.y * blockDim.x + threadIdx.x;
	if (c < width) out[(size_t)index[row] * width + c] += x[(size_t)row * width + c];
}
EXPORT(add_rows)

enum Activation { SILU, GELU_TANH, GELU, TANH };

static __device__ __forceinline__ float activate(int act, float v) {
	switch (act) {
	case SILU: return v / (1.0f + expf(-v));
	case GELU_TANH: return 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
	case GELU: return 0.5f * v * (1.0f + erff(v * 0.70710678118f));
	default: return tanhf(v);
	}
}

// activate_rows writes act(gate), times up where there is one. Blocks along y share
// a row, four columns a thread.
extern "C" __global__ void activate_rows(float *floats, unsigned *q, float *qd, float *qs, uint2 *h, float *hs, const float *gate, const float *up, int act, int width) {
	int row = blockIdx.x, from = blockIdx.y * 4 * blockDim.x, to = min(width, from + 4 * (int)blockDim.x);
	gate += (size_t)row * width;
	if (up) up += (size_t)row * width;
	RowOut out = {floats, {q, qd, qs}, {h, hs}};
	emit(out, row, width, from, to, [&](int c) { return activate(act, gate[c]) * (up ? up[c] : 1.0f); });
}
EXPORT(activate_rows)

// pool_rows turns the rows of each span into one vector: their mean, or the first;
// unit scales it to length one. spans are {first row, rows, _, _}.
extern "C" __global__ void pool_rows(float *out, const float *x, const int4 *spans, int mean, int unit, int width) {
	int4 span = spans[blockIdx.x];
	int rows = mean ? span.y : 1;
	x += (size_t)span.x * width;
	out += (size_t)blockIdx.x * width;
	float square = 0;
	for (int c = threadIdx.x; c < width; c += blockDim.x) {
		float v = x[c];
		for (int r = 1; r < rows; r++) v += x[(size_t)r * width + c];
		out[c] = v = v * (1.0f / rows);
		square = fmaf(v, v, square);
	}
	if (!unit) return;
	square = block_sum(square);
	float by = square > 0 ? 1.0f / sqrtf(square) : 1.0f;
	for (int c = threadIdx.x; c < width; c += blockDim.x) out[c] *= by;
}
EXPORT(pool_rows)
