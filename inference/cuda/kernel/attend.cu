// Attention over the paged cache with a running softmax (FlashAttention, arXiv
// 2205.14135). A block computes a tile of TILE query rows that share a key/value
// head: the heads of a group at one position, or at several. Positions are visited in
// chunks and in sections that begin at fixed positions and are joined in order, by the
// block itself or, where queries are few, by attend_join after blocks took a section
// each (split-KV). A row's result depends on nothing but the row and what it sees.
#include "attend.cuh"

static const int chunk = 64;

// Tile is the shared memory of a block.
template <int TILE> struct Tile {
	float *q;      // dim × TILE
	float *scores; // chunk × TILE, then the weights
	float *top, *sum, *shrink;
};

// scores fills the chunk at base: each thread one position for four query rows.
template <int TILE, class C> static __device__ __forceinline__ void score_chunk(const View<C> &w, const Tile<TILE> &t, const int4 &span, int head, int first, int group, int base, int hi) {
	for (int item = threadIdx.x; item < chunk * TILE / 4; item += blockDim.x) {
		int j = item % chunk, part = item / chunk * 4, position = base + j;
		float s[4] = {0, 0, 0, 0};
		if (position < hi) w.keys.dots(s, w.row(span, position, head), t.q + part, TILE, w.dim);
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

// accumulate adds the weighted values of a chunk to element e of each query row.
template <int TILE, class C> static __device__ __forceinline__ void accumulate(float (&acc)[TILE], const View<C> &w, const Tile<TILE> &t, const int4 &span, int head, int base, int hi, int e) {
	for (int i = 0; i < TILE; i++) acc[i] *= t.shrink[i];
#pragma unroll 2
	for (int j = 0; j < min(chunk, hi - base); j++) {
		float v = w.values.value(w.row(span, base + j, head), e, w.dim);
		for (int i = 0; i < TILE; i++) acc[i] = fmaf(t.scores[j * TILE + i], v, acc[i]);
	}
}

// load_queries copies the tile's queries, dimension by dimension.
template <int TILE, class C> static __device__ __forceinline__ void load_queries(const Tile<TILE> &t, const float *q, const View<C> &w, const int4 &span, int head, int first, int count, int group) {
	for (int i = threadIdx.x; i < TILE * w.dim; i += blockDim.x) {
		int r = i / w.dim, p = first + r;
		size_t at = ((size_t)(span.x + p / group) * w.heads + head * group + p % group) * w.dim + i % w.dim;
		t.q[i % w.dim * TILE + r] = r < count ? q[at] : 0.0f;
	}
}

// attend_section runs positions [lo, hi) and leaves maxima and sums in shared memory.
template <int TILE, class C> static __device__ __forceinline__ void attend_section(float (&acc)[TILE], const View<C> &w, const Tile<TILE> &t, const int4 &span, int head, int first, int group, int lo, int hi) {
	__syncthreads();
	if (threadIdx.x < TILE) {
		t.top[threadIdx.x] = NEVER;
		t.sum[threadIdx.x] = 0;
	}
	for (int i = 0; i < TILE; i++) acc[i] = 0;
	for (int base = lo; base < hi; base += chunk) {
		__syncthreads();
		score_chunk(w, t, span, head, first, group, base, hi);
		__syncthreads();
		weigh_chunk<TILE>(t);
		__syncthreads();
		if ((int)threadIdx.x < w.dim) accumulate(acc, w, t, span, head, base, hi, threadIdx.x);
	}
}

template <int TILE, class C> static __device__ __forceinline__ void attend(float *out, float *partial, const float *q, const View<C> &w, const int4 *spans, const int2 *tiles) {
	DYNAMIC_SHARED(float, memory);
	Tile<TILE> t = {memory, memory + w.dim * TILE, 0, 0, 0};
	t.top = t.scores + chunk * TILE;
	t.sum = t.top + TILE;
	t.shrink = t.sum + TILE;

	int2 tile = tiles[blockIdx.x];
	int4 span = spans[tile.x];
	int first = tile.y, head = blockIdx.y, group = w.heads / w.kvheads, e = threadIdx.x;
	int count = min(TILE, span.y * group - first);
	int begin = w.begin(span, first / group) / chunk * chunk, end = w.end(span, (first + count - 1) / group);
	int section = begin / section_tokens, last = (end - 1) / section_tokens;
	bool split = gridDim.z > 1;
	if (split) {
		if ((int)blockIdx.z < section || (int)blockIdx.z > last) return;
		section = last = blockIdx.z;
	}
	load_queries(t, q, w, span, head, first, count, group);
	float acc[TILE], total[TILE] = {};
	Running r[TILE];
	for (int i = 0; i < TILE; i++) r[i] = {NEVER, 0.0f};
	for (; section <= last; section++) {
		attend_section(acc, w, t, span, head, first, group, max(begin, section * section_tokens), min(end, (section + 1) * section_tokens));
		if (!split)
			for (int i = 0; i < TILE; i++) {
				float keep, by;
				r[i].add(t.top[i], t.sum[i], keep, by);
				total[i] = total[i] * keep + acc[i] * by;
			}
	}
	for (int i = 0; i < TILE; i++) {
		if (i >= count) break;
		int p = first + i;
		size_t at = (size_t)(span.x + p / group) * w.heads + head * group + p % group;
		if (!split) {
			if (e < w.dim) out[at * w.dim + e] = total[i] / r[i].sum;
			continue;
		}
		float *part = partial + (at * gridDim.z + blockIdx.z) * (w.dim + 2);
		if (e < w.dim) part[2 + e] = acc[i];
		if (e == 0) {
			part[0] = t.top[i];
			part[1] = t.sum[i];
		}
	}
}

// attend_* runs tiles along x and key/value heads along y. With one block along z a
// tile goes over its sections itself and the result goes to out; with more, each takes
// the section of its number and leaves it in partial as {maximum, sum, values}. A block
// has at least dim threads, in whole warps.
#define ATTEND(tile, name, Rows, CACHE)                                                                                   \
	extern "C" __global__ void attend_##name##_##tile(float *out, float *partial, const float *q, CACHE##_CACHE_PARAMS, ATTEND_PARAMS) { \
		View<Rows> w = {CACHE##_KEYS, CACHE##_VALUES, tables, heads, kvheads, dim, scale, cap, window, causal};              \
		attend<tile>(out, partial, q, w, spans, tiles);                                                                     \
	}                                                                                                                       \
	EXPORT(attend_##name##_##tile)

ATTEND(4, f16, HalfRows, HALF)
ATTEND(8, f16, HalfRows, HALF)
ATTEND(16, f16, HalfRows, HALF)
ATTEND(4, q8_0, CodedRows<ByteRows>, BYTE)
ATTEND(8, q8_0, CodedRows<ByteRows>, BYTE)
ATTEND(16, q8_0, CodedRows<ByteRows>, BYTE)
ATTEND(4, fp8, CodedRows<Fp8Rows>, FP8)
ATTEND(8, fp8, CodedRows<Fp8Rows>, FP8)
ATTEND(16, fp8, CodedRows<Fp8Rows>, FP8)

// attend_join adds the sections of a row (x) and head (y) in order. ends holds, for
// every row, the position after the last one it sees.
extern "C" __global__ void attend_join(float *out, const float *partial, const int *ends, int sections, int window, int dim) {
	size_t at = (size_t)blockIdx.x * gridDim.y + blockIdx.y;
	int end = ends[blockIdx.x], from = window ? max(0, end - window) / section_tokens : 0, to = (end - 1) / section_tokens + 1, e = threadIdx.x;
	if (e >= dim) return;
	Running r = {NEVER, 0.0f};
	float total = 0;
	for (int s = from; s < to; s++) {
		const float *part = partial + (at * sections + s) * (dim + 2);
		float keep, by;
		r.add(part[0], part[1], keep, by);
		total = total * keep + part[2 + e] * by;
	}
	out[at * dim + e] = total / r.sum;
}
EXPORT(attend_join)
