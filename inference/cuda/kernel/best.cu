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

// Choice says how the candidates of a row are found: the logits of count ids from first
// on are penalised; scale multiplies logits in the second of the row's sums.
struct Choice {
	int first, count;
	float penalty, scale;
};

// penalise changes the keys of a chunk, of logits from first on of a row of n.
static __device__ __forceinline__ void penalise(u64 *keys, const float *row, int first, int n, Choice c, const int *ids) {
	__syncthreads();
	int end = min(first + chunk_keys, n);
	for (int i = threadIdx.x; i < c.count; i += blockDim.x) {
		int id = ids[c.first + i];
		if (id < first || id >= end) continue;
		float v = row[id];
		keys[id - first] = key_of(v > 0 ? v / c.penalty : v * c.penalty, id);
	}
}

// block_max is the largest of the values of all threads of the block.
static __device__ __forceinline__ float block_max(float v) {
	SHARED(float, part, 32);
	v = warp_max(v);
	if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
	__syncthreads();
	for (int i = 0; i < (int)blockDim.x / 32; i++) v = fmaxf(v, part[i]);
	return v;
}

// chunk_sums writes {m, Σ exp(logit − m)} of n logits, m being the largest, and the same
// of the penalised ones, which keys has from the largest on, with differences scaled.
static __device__ __forceinline__ void chunk_sums(float *out, const float *logits, const u64 *keys, int n, float scale) {
	float top = NOTHING, sum = 0, best = logit_of(keys[0]), scaled = 0;
	for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, logits[i]);
	top = block_max(top);
	// Where all are -infinity, the differences would be NaN.
	for (int i = threadIdx.x; i < n && top != NOTHING; i += blockDim.x) sum += expf(logits[i] - top);
	for (int i = threadIdx.x; i < n && best != NOTHING; i += blockDim.x) scaled += expf((logit_of(keys[i]) - best) * scale);
	sum = block_sum(sum);
	scaled = block_sum(scaled);
	if (threadIdx.x == 0) {
		out[0] = top;
		out[1] = sum;
		out[2] = best;
		out[3] = scaled;
	}
}

// best_logits sorts a chunk (x) of a row (y) of n logits, penalised, or of n keys where
// there are some, and writes its first k keys; 0 stands for none. For logits it also
// writes the chunk's sums.
extern "C" __global__ void best_logits(u64 *out, float *sums, const float *logits, const u64 *from, const Choice *choices, const int *ids, int n, int k) {
	DYNAMIC_SHARED(u64, keys);
	int row = blockIdx.y, first = blockIdx.x * chunk_keys;
	size_t chunk = (size_t)row * gridDim.x + blockIdx.x;
	logits += (size_t)row * n;
	for (int i = threadIdx.x; i < chunk_keys; i += blockDim.x)
		keys[i] = first + i >= n ? 0 : from ? from[(size_t)row * n + first + i] : key_of(logits[first + i], first + i);
	if (!from) penalise(keys, logits, first, n, choices[row], ids);
	sort_down(keys);
	for (int i = threadIdx.x; i < k; i += blockDim.x) out[chunk * k + i] = keys[i];
	if (!from) chunk_sums(sums + 4 * chunk, logits + first, keys, min(chunk_keys, n - first), choices[row].scale);
}
EXPORT(best_logits)

// join makes one {m, Σ exp((logit − m) · scale)} of those of chunks, with one warp.
static __device__ __forceinline__ void join(float *out, const float *sums, int chunks, float scale) {
	float top = NOTHING, sum = 0;
	for (int i = threadIdx.x; i < chunks; i += 32) top = fmaxf(top, sums[4 * i]);
	top = warp_max(top);
	for (int i = threadIdx.x; i < chunks && top != NOTHING; i += 32) sum = fmaf(sums[4 * i + 1], expf((sums[4 * i] - top) * scale), sum);
	sum = warp_sum(sum);
	if (threadIdx.x == 0) {
		out[0] = top;
		out[1] = sum;
	}
}

// join_sums writes the sums of a row and then the logits, as they were before penalties,
// of its k keys.
extern "C" __global__ void join_sums(float *out, const float *sums, const float *logits, const u64 *keys, const Choice *choices, int chunks, int n, int k) {
	int row = blockIdx.x;
	out += (size_t)row * (4 + k);
	sums += 4 * (size_t)row * chunks;
	join(out, sums, chunks, 1);
	join(out + 2, sums + 2, chunks, choices[row].scale);
	for (int i = threadIdx.x; i < k; i += 32) out[4 + i] = logits[(size_t)row * n + ~(unsigned)keys[(size_t)row * k + i]];
}
EXPORT(join_sums)
