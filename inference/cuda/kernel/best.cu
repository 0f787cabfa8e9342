// The largest logits of a row: chunks of it are sorted, then chunks of what is left of
// those, until one chunk is left.
#include "device.cuh"

typedef unsigned long long u64;

static const int chunk_keys = 1024;

#define NOTHING __int_as_float(0xff800000) // -infinity

// key_of orders tokens as the host's sampler does: larger logits first, then lower ids,
// both zeros being one; a NaN comes before everything.
static __device__ __forceinline__ u64 key_of(float v, unsigned id) {
	v += 0.0f;
	unsigned bits = v != v ? 0x7fffffffu : __float_as_uint(v);
	bits ^= bits >> 31 ? 0xffffffffu : 0x80000000u;
	return (u64)bits << 32 | ~id;
}

static __device__ __forceinline__ float logit_of(u64 key) {
	unsigned bits = key >> 32;
	return __uint_as_float(bits ^ (bits >> 31 ? 0x80000000u : 0xffffffffu));
}

// sort_down is a bitonic sort, largest first.
static __device__ __forceinline__ void sort_down(u64 *keys) {
	for (int size = 2; size <= chunk_keys; size *= 2)
		for (int stride = size / 2; stride > 0; stride /= 2) {
			__syncthreads();
			for (int p = threadIdx.x; p < chunk_keys / 2; p += blockDim.x) {
				int i = 2 * p - (p & (stride - 1)), j = i + stride;
				u64 a = keys[i], b = keys[j];
				if ((a < b) != ((i & size) != 0)) {
					keys[i] = b;
					keys[j] = a;
				}
			}
		}
	__syncthreads();
}

// best_logits sorts a chunk (x) of a row (y) of n logits, or of n keys where there are
// some, and writes its first k keys; 0 stands for none. For logits it also writes the
// chunk's maximum m and Σ exp(logit − m).
extern "C" __global__ void best_logits(u64 *out, float *sums, const float *logits, const u64 *from, int n, int k) {
	DYNAMIC_SHARED(u64, keys);
	int row = blockIdx.y, first = blockIdx.x * chunk_keys;
	size_t chunk = (size_t)row * gridDim.x + blockIdx.x;
	for (int i = threadIdx.x; i < chunk_keys; i += blockDim.x) {
		size_t at = (size_t)row * n + first + i;
		keys[i] = first + i >= n ? 0 : from ? from[at] : key_of(logits[at], first + i);
	}
	sort_down(keys);
	for (int i = threadIdx.x; i < k; i += blockDim.x) out[chunk * k + i] = keys[i];
	if (from) return;
	float top = logit_of(keys[0]), sum = 0;
	// Where all are -infinity, the differences would be NaN.
	int count = top == NOTHING ? 0 : min(chunk_keys, n - first);
	for (int i = threadIdx.x; i < count; i += blockDim.x) sum += expf(logits[(size_t)row * n + first + i] - top);
	sum = block_sum(sum);
	if (threadIdx.x == 0) {
		sums[2 * chunk] = top;
		sums[2 * chunk + 1] = sum;
	}
}
EXPORT(best_logits)

// join_sums makes one {maximum, sum} of those of a row's chunks, with one warp.
extern "C" __global__ void join_sums(float *out, const float *sums, int chunks) {
	sums += 2 * (size_t)blockIdx.x * chunks;
	float top = NOTHING, sum = 0;
	for (int i = threadIdx.x; i < chunks; i += 32) top = fmaxf(top, sums[2 * i]);
	top = warp_max(top);
	for (int i = threadIdx.x; i < chunks && top != NOTHING; i += 32) sum = fmaf(sums[2 * i + 1], expf(sums[2 * i] - top), sum);
	sum = warp_sum(sum);
	if (threadIdx.x == 0) {
		out[2 * blockIdx.x] = top;
		out[2 * blockIdx.x + 1] = sum;
	}
}
EXPORT(join_sums)
