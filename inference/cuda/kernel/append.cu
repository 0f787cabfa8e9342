// Writing keys and values into the paged cache.
#include "cache.cuh"

// rotate_pair turns one pair of a head by its angle.
static __device__ __forceinline__ void rotate_pair(float &a, float &b, float cos, float sin) {
	float turned = a * cos - b * sin;
	b = a * sin + b * cos;
	a = turned;
}

// append handles one head of one row with one warp: heads of q first, rotated in
// place, then those of k, rotated in place and written into the cache with v. A gain is
// the norm of each head before it is rotated (over dim values). cos and sin hold turned/2
// values a row; halves pairs i with i + turned/2, else 2i with 2i+1.
// slots are block · 16 + place in the block.
template <class C> static __device__ __forceinline__ void append(float *q, float *k, const float *v, const C &keys, const C &values, const float *cos, const float *sin, const int *slots, const float *qgain, const float *kgain, float qeps, float keps, int heads, int kvheads, int dim, int turned, int halves) {
	int row = blockIdx.x, head = blockIdx.y, lane = threadIdx.x;
	bool query = head < heads;
	if (!query) head -= heads;
	float *x = query ? q + ((size_t)row * heads + head) * dim : k + ((size_t)row * kvheads + head) * dim;
	const float *gain = query ? qgain : kgain;
	float r = 1.0f;
	if (gain) {
		float square = 0;
		for (int i = lane; i < dim; i += 32) square = fmaf(x[i], x[i], square);
		r = 1.0f / sqrtf(warp_sum(square) / dim + (query ? qeps : keps));
	}
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
		x[a] = first;
		x[b] = second;
	}
	if (query) return;
	__syncthreads();
	size_t at = row_of(slots[row] / cache_block, slots[row] % cache_block, head, kvheads);
	keys.store(at, x, dim);
	values.store(at, v + ((size_t)row * kvheads + head) * dim, dim);
}

#define APPEND_PARAMS const float *cos, const float *sin, const int *slots, const float *qgain, const float *kgain, float qeps, float keps, int heads, int kvheads, int dim, int turned, int halves
#define APPEND(name, Rows, CACHE)                                                                                       \
	extern "C" __global__ void name(float *q, float *k, const float *v, CACHE##_CACHE_PARAMS, APPEND_PARAMS) {             \
		Rows to_keys = CACHE##_KEYS, to_values = CACHE##_VALUES;                                                          \
		append(q, k, v, to_keys, to_values, cos, sin, slots, qgain, kgain, qeps, keps, heads, kvheads, dim, turned, halves); \
	}                                                                                                                     \
	EXPORT(name)

APPEND(append_f16, HalfRows, HALF)
APPEND(append_q8_0, CodedRows<ByteRows>, BYTE)
APPEND(append_fp8, CodedRows<Fp8Rows>, FP8)
