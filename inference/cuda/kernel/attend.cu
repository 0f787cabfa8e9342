// Attention over the paged cache with a running softmax (FlashAttention, arXiv
// 2205.14135). A block computes a tile of TILE query rows that share a key/value
// head: the heads of a group at one position, or at several. Positions are visited in
// chunks and in sections that begin at fixed positions; several sections of a tile
// run at once (split-KV) and attend_join adds them in order. A row's result depends
// on nothing but the row and what it sees.
#include "device.cuh"

static const int cache_block = 16, chunk = 64, section_tokens = 256;

#define NEVER __int_as_float(0xff800000) // -infinity

// View is what attention reads: keys and values of one layer, block tables, spans as
// {first row, rows, position of the first row, offset in the tables}, tiles as {span,
// first query row of the span}, and the shape.
struct View {
	const half_bits *keys, *values;
	const int *tables;
	int heads, kvheads, dim;
	float scale, cap;
	int window, causal;

	// row is where the key or value of a position begins.
	__device__ __forceinline__ size_t row(const int4 &span, int position, int head) const {
		size_t block = tables[span.w + position / cache_block];
		return ((block * kvheads + head) * cache_block + position % cache_block) * dim;
	}

	// end and begin bound what row r of a span sees.
	__device__ __forceinline__ int end(const int4 &span, int r) const { return causal ? span.z + r + 1 : span.y; }
	__device__ __forceinline__ int begin(const int4 &span, int r) const { return causal && window ? max(0, span.z + r + 1 - window) : 0; }

	__device__ __forceinline__ float score(float dot) const {
		float s = scale * dot;
		return cap > 0 ? cap * tanhf(s / cap) : s;
	}
};

// Tile is the shared memory of a block.
template <int TILE> struct Tile {
	float *q;      // dim × TILE
	float *scores; // chunk × TILE, then the weights
	float *top, *sum, *shrink;
};

// scores fills the chunk at base: each thread one position for four query rows.
template <int TILE> static __device__ __forceinline__ void score_chunk(const View &w, const Tile<TILE> &t, const int4 &span, int head, int first, int group, int base, int hi) {
	for (int item = threadIdx.x; item < chunk * TILE / 4; item += blockDim.x) {
		int j = item % chunk, part = item / chunk * 4, position = base + j;
		float s[4] = {0, 0, 0, 0};
		if (position < hi) {
			const half_bits *key = w.keys + w.row(span, position, head);
#pragma unroll 4
			for (int e = 0; e < w.dim; e++) {
				float k = half_to_float(key[e]);
				for (int i = 0; i < 4; i++) s[i] = fmaf(t.q[e * TILE + part + i], k, s[i]);
			}
		}
		for (int i = 0; i < 4; i++) {
			int r = (first + part + i) / group;
			bool seen = position < hi && position < w.end(span, r) && position >= w.begin(span, r);
			t.scores[j * TILE + part + i] = seen ? w.score(s[i]) : NEVER;
		}
	}
}

// weigh turns the scores of a chunk into weights relative to the new maximum; a warp
// takes a query row.
template <int TILE> static __device__ __forceinline__ void weigh_chunk(const Tile<TILE> &t) {
	int lane = threadIdx.x % 32;
	for (int i = threadIdx.x / 32; i < TILE; i += blockDim.x / 32) {
		float a = t.scores[lane * TILE + i], b = t.scores[(lane + 32) * TILE + i], old = t.top[i];
		float top = fmaxf(old, warp_max(fmaxf(a, b)));
		bool any = top != NEVER;
		a = any ? expf(a - top) : 0.0f;
		b = any ? expf(b - top) : 0.0f;
		float sum = warp_sum(a + b);
		t.scores[lane * TILE + i] = a;
		t.scores[(lane + 32) * TILE + i] = b;
		if (lane == 0) {
			float shrink = old != NEVER ? expf(old - top) : 0.0f;
			t.shrink[i] = shrink;
			t.sum[i] = fmaf(t.sum[i], shrink, sum);
			t.top[i] = top;
		}
	}
}

template <int TILE> static __device__ __forceinline__ void attend(float *out, float *partial, const float *q, const View &w, const int4 *spans, const int2 *tiles) {
	DYNAMIC_SHARED(float, memory);
	Tile<TILE> t = {memory, memory + w.dim * TILE, 0, 0, 0};
	t.top = t.scores + chunk * TILE;
	t.sum = t.top + TILE;
	t.shrink = t.sum + TILE;

	int2 tile = tiles[blockIdx.x];
	int4 span = spans[tile.x];
	int first = tile.y, head = blockIdx.y, section = blockIdx.z, group = w.heads / w.kvheads, e = threadIdx.x;
	int count = min(TILE, span.y * group - first);
	int lo = max(section * section_tokens, w.begin(span, first / group) / chunk * chunk);
	int hi = min((section + 1) * section_tokens, w.end(span, (first + count - 1) / group));
	if (lo >= hi) return;

	for (int i = threadIdx.x; i < TILE * w.dim; i += blockDim.x) {
		int r = i / w.dim, p = first + r;
		size_t at = ((size_t)(span.x + p / group) * w.heads + head * group + p % group) * w.dim + i % w.dim;
		t.q[i % w.dim * TILE + r] = r < count ? q[at] : 0.0f;
	}
	if (threadIdx.x < TILE) {
		t.top[threadIdx.x] = NEVER;
		t.sum[threadIdx.x] = 0;
	}
	float acc[TILE] = {};
	for (int base = lo; base < hi; base += chunk) {
		__syncthreads();
		score_chunk<TILE>(w, t, span, head, first, group, base, hi);
		__syncthreads();
		weigh_chunk<TILE>(t);
		__syncthreads();
		if (e >= w.dim) continue;
		for (int i = 0; i < TILE; i++) acc[i] *= t.shrink[i];
#pragma unroll 2
		for (int j = 0; j < min(chunk, hi - base); j++) {
			float v = half_to_float(w.values[w.row(span, base + j, head) + e]);
			for (int i = 0; i < TILE; i++) acc[i] = fmaf(t.scores[j * TILE + i], v, acc[i]);
		}
	}
	for (int i = 0; i < count; i++) {
		int p = first + i;
		size_t at = (size_t)(span.x + p / group) * w.heads + head * group + p % group;
		if (gridDim.z == 1) {
			if (e < w.dim) out[at * w.dim + e] = acc[i] / t.sum[i];
			continue;
		}
		float *part = partial + (at * gridDim.z + section) * (w.dim + 2);
		if (e < w.dim) part[2 + e] = acc[i];
		if (e == 0) {
			part[0] = t.top[i];
			part[1] = t.sum[i];
		}
	}
}

// attend_* runs tiles along x, key/value heads along y and sections along z. With one
// section the result goes to out, else each goes to partial as {maximum, sum, values}.
// A block has at least dim threads.
#define ATTEND(tile)                                                                                                                                                                                                                  \
	extern "C" __global__ void attend_##tile(float *out, float *partial, const float *q, const half_bits *keys, const half_bits *values, const int *tables, const int4 *spans, const int2 *tiles, int heads, int kvheads, int dim, float scale, float cap, int window, int causal) { \
		View w = {keys, values, tables, heads, kvheads, dim, scale, cap, window, causal};                                                                                                                                              \
		attend<tile>(out, partial, q, w, spans, tiles);                                                                                                                                                                                \
	}                                                                                                                                                                                                                                  \
	EXPORT(attend_##tile)

ATTEND(4)
ATTEND(8)
ATTEND(16)

// attend_join adds the sections of a row (x) and head (y) in order. ends holds, for
// every row, the position after the last one it sees.
extern "C" __global__ void attend_join(float *out, const float *partial, const int *ends, int sections, int window, int dim) {
	size_t at = (size_t)blockIdx.x * gridDim.y + blockIdx.y;
	int end = ends[blockIdx.x], from = window ? max(0, end - window) / section_tokens : 0, to = (end - 1) / section_tokens + 1, e = threadIdx.x;
	if (e >= dim) return;
	float top = NEVER, sum = 0, acc = 0;
	for (int s = from; s < to; s++) {
		const float *part = partial + (at * sections + s) * (dim + 2);
		if (part[0] == NEVER) continue;
		float next = fmaxf(top, part[0]), keep = top != NEVER ? expf(top - next) : 0.0f, by = expf(part[0] - next);
		sum = sum * keep + part[1] * by;
		acc = acc * keep + part[2 + e] * by;
		top = next;
	}
	out[at * dim + e] = acc / sum;
}
EXPORT(attend_join)
