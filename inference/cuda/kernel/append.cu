// Writing keys and values into the paged cache: a block of one layer and head holds
// 16 positions that follow each other, keys and values in halves of their own.
#include "device.cuh"

static const int block_tokens = 16;

// rotate_pair turns one pair of a head by its angle.
static __device__ __forceinline__ void rotate_pair(float &a, float &b, float cos, float sin) {
	float turned = a * cos - b * sin;
	b = a * sin + b * cos;
	a = turned;
}

// append handles one head of one row with one warp: heads of q first, rotated in
// place, then those of k, rotated into the cache with v. A gain is the norm of each
// head before it is rotated (over dim values). cos and sin hold turned/2 values a
// row; halves pairs i with i + turned/2, else 2i with 2i+1.
// slots are block · 16 + position in the block; keys and values begin at the layer.
extern "C" __global__ void append(float *q, const float *k, const float *v, half_bits *keys, half_bits *values, const float *cos, const float *sin, const int *slots, const float *qgain, const float *kgain, float qeps, float keps, int heads, int kvheads, int dim, int turned, int halves) {
	int row = blockIdx.x, head = blockIdx.y, lane = threadIdx.x;
	bool query = head < heads;
	if (!query) head -= heads;
	float *x = query ? q + ((size_t)row * heads + head) * dim : (float *)k + ((size_t)row * kvheads + head) * dim;
	const float *gain = query ? qgain : kgain;
	float r = 1.0f;
	if (gain) {
		float square = 0;
		for (int i = lane; i < dim; i += 32) square = fmaf(x[i], x[i], square);
		r = 1.0f / sqrtf(warp_sum(square) / dim + (query ? qeps : keps));
	}
	int slot = slots[row];
	size_t at = (((size_t)(slot / block_tokens) * kvheads + head) * block_tokens + slot % block_tokens) * dim;
	for (int i = lane; i < dim / 2; i += 32) {
		bool turn = i < turned / 2;
		// Pairs that do not rotate are neighbours.
		int a = turn && halves ? i : 2 * i, b = turn && halves ? i + turned / 2 : 2 * i + 1;
		float first = x[a], second = x[b];
		if (gain) {
			first = first * r * gain[a];
			second = second * r * gain[b];
		}
		if (turn) rotate_pair(first, second, cos[(size_t)row * (turned / 2) + i], sin[(size_t)row * (turned / 2) + i]);
		if (query) {
			x[a] = first;
			x[b] = second;
			continue;
		}
		keys[at + a] = float_to_half(first);
		keys[at + b] = float_to_half(second);
	}
	if (query) return;
	v += ((size_t)row * kvheads + head) * dim;
	for (int i = lane; i < dim; i += 32) values[at + i] = float_to_half(v[i]);
}
EXPORT(append)
