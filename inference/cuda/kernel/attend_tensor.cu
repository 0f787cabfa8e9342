// Attention on tensor cores, for compute capability 8.0 and later (PTX ISA,
// mma.m16n8k16 of halves with float sums; FlashAttention-2, arXiv 2307.08691). Sections
// and their join are attend.cu's. A block computes 64 query rows that share a key/value
// head, with four warps, and copies each chunk of keys and values to shared memory once,
// in half precision: the values while scores are computed, the next keys while values are.
//
// A tile of more than 16 rows is wide: every warp has 16 rows of its own. With fewer, as
// in decoding, the warps share them: each takes a part of the chunk's positions for the
// scores and a part of the dimensions for the values. The bits are the same, and those of
// any tile: a score is one sum over the dimensions, an output one over the positions, 16
// at a time, and what a row does not see adds zeros.
//
// Halves overflow at 65,504. A query row is multiplied by the power of two that brings its
// largest value into [1, 2), which is exact, and its scores by the inverse. Keys and values
// are halves in the cache, or codes that are made halves here. Weights are 0 to 1; the sum
// of a row's weights is that of the rounded ones: a column of values that are all one.
#include "attend.cuh"

static const int warps = 4, threads = 32 * warps, tile_rows = 64;
static const float log2_e = 1.44269504f, ln_2 = 0.693147181f;

// Shape is what depends on the size of a head. Rows in shared memory are 16 bytes longer
// than their values, so that eight of them, 16 bytes of each, lie in different banks.
template <int DIM> struct Shape {
	static constexpr int chunk = DIM > 128 ? 32 : 64, groups = chunk / 16; // positions
	static constexpr int stride = DIM / 2 + 4, weights_stride = chunk / 2 + 4;
	static constexpr int pairs = DIM / 16;  // of column tiles of 8 dimensions
	static constexpr bool kept = DIM <= 128; // queries stay in registers
};

// Box is the shared memory of a block: pairs of halves, and floats. Queries that stay in
// registers lie where values come later; others follow at the end, so that tiles
// of few rows take less.
template <int DIM> struct Box {
	typedef Shape<DIM> S;
	unsigned *keys, *values, *weights, *queries;
	float *tops, *powers; // of the warps' rows, of the tile's

	__device__ __forceinline__ Box(unsigned *memory) {
		keys = memory;
		values = keys + S::chunk * S::stride;
		weights = values + S::chunk * S::stride;
		tops = (float *)(weights + 16 * S::weights_stride);
		powers = tops + 16 * warps;
		queries = S::kept ? values : (unsigned *)(powers + tile_rows);
	}
};

// Tile is the work of a block.
struct Tile {
	int4 span;
	int head, heads, group, first, count; // of query rows
	int begin, end, section, last;        // positions, sections
	bool split;

	// at is the number of a query row and head among all.
	__device__ __forceinline__ size_t at(int i) const {
		int p = first + i;
		return (size_t)(span.x + p / group) * heads + head * group + p % group;
	}
};

// Rows are the two query rows of which a thread has elements: lane/4 and 8 below.
struct Rows {
	int begin[2], end[2];
	float factor[2], top[2];
	Running before[2]; // this section

	template <int DIM, class C> __device__ __forceinline__ void open(const View<C> &w, const Tile &t, const Box<DIM> &box, int base) {
#pragma unroll
		for (int r = 0; r < 2; r++) {
			int i = base + threadIdx.x % 32 / 4 + 8 * r, row = (t.first + i) / t.group;
			begin[r] = w.begin(t.span, row);
			end[r] = w.end(t.span, row);
			factor[r] = box.powers[i] * w.scale * log2_e;
			if (w.cap > 0) factor[r] *= 2 / w.cap;
			before[r] = {NEVER, 0.0f};
		}
	}
};

// Queries are the A fragments of 16 query rows.
template <int DIM> struct Queries {
	typedef Shape<DIM> S;
	unsigned all[S::kept ? S::pairs : 1][4];
	const unsigned *row;

	__device__ __forceinline__ Queries(const Box<DIM> &box, int base) {
		row = box.queries + (base + threadIdx.x % 16) * S::stride + threadIdx.x % 32 / 16 * 4;
		if constexpr (S::kept) {
#pragma unroll
			for (int k = 0; k < S::pairs; k++) load_matrices(all[k], row + 8 * k);
		}
	}
	__device__ __forceinline__ void get(unsigned (&a)[4], int k) const {
		if constexpr (S::kept) {
#pragma unroll
			for (int i = 0; i < 4; i++) a[i] = all[k][i];
		} else {
			load_matrices(a, row + 8 * k);
		}
	}
};

// load_queries makes rows of queries halves; those beyond the tile's are zeros. A warp
// reads four rows at once.
template <int DIM> static __device__ __forceinline__ void load_queries(const Box<DIM> &box, const float *q, const Tile &t, int rows) {
	const int words = (DIM + 63) / 64;
	int lane = threadIdx.x % 32;
	for (int base = threadIdx.x / 32; base < rows; base += 4 * warps) {
		float2 x[4][words];
#pragma unroll
		for (int i = 0; i < 4 * words; i++) {
			int row = base + i / words * warps, e = lane + i % words * 32;
			x[i / words][i % words] = {0, 0};
			if (row < t.count && e < DIM / 2) x[i / words][i % words] = ((const float2 *)(q + t.at(row) * DIM))[e];
		}
#pragma unroll
		for (int i = 0; i < 4; i++) {
			float top = 0;
			for (const float2 &v : x[i]) top = fmaxf(top, fmaxf(fabsf(v.x), fabsf(v.y)));
			// Powers of two that are normal numbers, and whose inverses are.
			int row = base + i * warps, power = min(max((int)(magnitude(warp_max(top)) >> 23), 1), 253);
			float by = __uint_as_float((unsigned)(254 - power) << 23);
#pragma unroll
			for (int e = lane, j = 0; j < words; e += 32, j++)
				if (e < DIM / 2) box.queries[row * Shape<DIM>::stride + e] = pack_halves(x[i][j].x * by, x[i][j].y * by);
			if (lane == 0) box.powers[row] = __uint_as_float((unsigned)power << 23);
		}
	}
}

// copy_eight copies eight values of a row of the cache, from dimension e on.
static __device__ __forceinline__ void copy_eight(uint4 *to, const HalfRows &rows, size_t row, int e, int dim) { copy_async(to, rows.x + row * dim + e); }

template <class R> static __device__ __forceinline__ void copy_eight(uint4 *to, const CodedRows<R> &rows, size_t row, int e, int dim) {
	uint2 codes = *(const uint2 *)(rows.codes + row * dim + e);
	float scale = R::scale_of(rows.d[row * (dim / 32) + e / 32]);
	unsigned words[4];
#pragma unroll
	for (int i = 0; i < 4; i++) {
		unsigned two = (i < 2 ? codes.x : codes.y) >> (i % 2 * 16);
		words[i] = pack_halves(scale * R::code_of(two & 255), scale * R::code_of(two >> 8 & 255));
	}
	*to = make_uint4(words[0], words[1], words[2], words[3]);
}

// copy_chunk begins to copy the rows of a chunk; those from hi on are zeros. The copies
// of a thread are done when it has waited for them.
template <int DIM, class R, class C> static __device__ __forceinline__ void copy_chunk(unsigned *to, const R &rows, const View<C> &w, const Tile &t, int base, int hi) {
	const int pieces = DIM / 8;
#pragma unroll 2
	for (int n = 0; n < Shape<DIM>::chunk * pieces / threads; n++) {
		int i = threadIdx.x + n * threads, j = i / pieces, part = i % pieces;
		uint4 *at = (uint4 *)(to + j * Shape<DIM>::stride) + part;
		if (base + j < hi) copy_eight(at, rows, w.row(t.span, base + j, t.head), 8 * part, DIM);
		else *at = make_uint4(0, 0, 0, 0);
	}
	copies_end();
}

// multiply_keys adds the products of 16 queries with groups of 16 keys, of which the
// first n are there.
template <int DIM, int GROUPS> static __device__ __forceinline__ void multiply_keys(float (&s)[GROUPS][2][4], const Queries<DIM> &q, const unsigned *keys, int n) {
	typedef Shape<DIM> S;
	int lane = threadIdx.x % 32;
	const unsigned *row = keys + (lane / 16 * 8 + lane % 8) * S::stride + lane / 8 % 2 * 4;
#pragma unroll
	for (int i = 0; i < GROUPS * 8; i++) (&s[0][0][0])[i] = 0.0f;
#pragma unroll
	for (int k = 0; k < S::pairs; k++) {
		unsigned a[4];
		q.get(a, k);
#pragma unroll
		for (int g = 0; g < GROUPS; g++) {
			if (16 * g >= n) break;
			unsigned b[4];
			load_matrices(b, row + 16 * g * S::stride + 8 * k);
			mma_half(s[g][0], a, b[0], b[1]);
			mma_half(s[g][1], a, b[2], b[3]);
		}
	}
}

// find_tops turns products into scores times log2(e), from position base on, and finds
// the largest of both rows. tanh(x) is 1 - 2/(1 + 2^(2·log2(e)·x)).
template <int GROUPS, class C> static __device__ __forceinline__ void find_tops(float (&top)[2], float (&s)[GROUPS][2][4], const Rows &rows, const View<C> &w, int base) {
	float cap = w.cap * log2_e, *all = &s[0][0][0];
#pragma unroll
	for (int i = 0; i < GROUPS * 8; i++) all[i] *= rows.factor[i / 2 % 2];
	if (cap > 0)
#pragma unroll
		for (int i = 0; i < GROUPS * 8; i++) all[i] = cap - 2 * cap / (1 + exp2f(all[i]));
	top[0] = top[1] = NEVER;
#pragma unroll
	for (int i = 0; i < GROUPS * 8; i++) {
		int r = i / 2 % 2, position = base + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
		if (position < rows.begin[r] || position >= rows.end[r]) all[i] = NEVER;
		top[r] = fmaxf(top[r], all[i]);
	}
#pragma unroll
	for (int r = 0; r < 2; r++) top[r] = quad_max(top[r]);
}

// share_tops gives warps that share rows the largest scores of all of them. All threads
// have to call.
template <int DIM> static __device__ __forceinline__ void share_tops(float (&top)[2], const Box<DIM> &box) {
	int row = threadIdx.x % 32 / 4;
	if (threadIdx.x % 4 == 0)
		for (int r = 0; r < 2; r++) box.tops[threadIdx.x / 32 * 16 + row + 8 * r] = top[r];
	__syncthreads();
#pragma unroll
	for (int i = 0; i < warps; i++)
		for (int r = 0; r < 2; r++) top[r] = fmaxf(top[r], box.tops[i * 16 + row + 8 * r]);
}

// weigh turns scores into weights relative to the rows' new maxima, as the A fragments of
// each group, and says by how much to shrink what was added before.
template <int GROUPS> static __device__ __forceinline__ void weigh(unsigned (&p)[GROUPS][4], float (&shrink)[2], const float (&s)[GROUPS][2][4], Rows &rows, const float (&top)[2]) {
	float base[2];
#pragma unroll
	for (int r = 0; r < 2; r++) {
		float next = fmaxf(rows.top[r], top[r]);
		base[r] = next == NEVER ? 0.0f : next;
		shrink[r] = exp2f(rows.top[r] - base[r]);
		rows.top[r] = next;
	}
#pragma unroll
	for (int g = 0; g < GROUPS; g++)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			const float *two = &s[g][i / 2][i % 2 * 2];
			p[g][i] = pack_halves(exp2f(two[0] - base[i % 2]), exp2f(two[1] - base[i % 2]));
		}
}

// store_weights shows the warps that share rows the weights of this one's group.
template <int DIM> static __device__ __forceinline__ void store_weights(const Box<DIM> &box, const unsigned (&p)[4]) {
	unsigned *at = box.weights + threadIdx.x % 32 / 4 * Shape<DIM>::weights_stride + threadIdx.x / 32 * 8 + threadIdx.x % 4;
#pragma unroll
	for (int i = 0; i < 4; i++) at[i % 2 * 8 * Shape<DIM>::weights_stride + i / 2 * 4] = p[i];
}

// Sums are the outputs of 16 rows for the pairs of column tiles that a warp has, first
// and every step-th after it, and the sums of the weights.
template <int DIM, bool WIDE> struct Sums {
	static constexpr int step = WIDE ? 1 : warps, owned = (Shape<DIM>::pairs + step - 1) / step;
	float v[owned][2][4], weights[4];
	int first;

	__device__ __forceinline__ void clear() {
#pragma unroll
		for (int i = 0; i < owned * 8; i++) (&v[0][0][0])[i] = 0.0f;
#pragma unroll
		for (int i = 0; i < 4; i++) weights[i] = 0.0f;
	}
	__device__ __forceinline__ void shrink(const float (&by)[2]) {
#pragma unroll
		for (int i = 0; i < owned * 8; i++) (&v[0][0][0])[i] *= by[i / 2 % 2];
#pragma unroll
		for (int i = 0; i < 4; i++) weights[i] *= by[i / 2];
	}
	// add adds weighted values of 16 positions.
	__device__ __forceinline__ void add(const unsigned (&p)[4], const unsigned *values) {
		const unsigned ones = 0x3c003c00u, *row = values + threadIdx.x % 16 * Shape<DIM>::stride + threadIdx.x % 32 / 16 * 4;
		mma_half(weights, p, ones, ones);
#pragma unroll
		for (int i = 0; i < owned; i++) {
			int pair = first + i * step;
			if (pair >= Shape<DIM>::pairs) break;
			unsigned b[4];
			load_transposed(b, row + 8 * pair);
			mma_half(v[i][0], p, b[0], b[1]);
			mma_half(v[i][1], p, b[2], b[3]);
		}
	}
};

// attend_section runs positions [lo, hi), of which the first chunk of keys is on its way,
// and begins to copy the first after them. A warp of a wide tile whose rows are all beyond
// the tile's only copies.
template <int DIM, bool WIDE, class C> static __device__ __forceinline__ void attend_section(Sums<DIM, WIDE> &sums, Rows &rows, const View<C> &w, const Box<DIM> &box, const Queries<DIM> &q, const Tile &t, int lo, int hi) {
	typedef Shape<DIM> S;
	const int groups = WIDE ? S::groups : 1; // of scores that a warp computes
	int warp = threadIdx.x / 32, mine = WIDE ? 0 : 16 * warp;
	bool active = !WIDE || 16 * warp < t.count;
	rows.top[0] = rows.top[1] = NEVER;
	sums.clear();
	for (int base = lo; base < hi; base += S::chunk) {
		int n = min(S::chunk, hi - base);
		copy_chunk<DIM>(box.values, w.values, w, t, base, hi);
		copies_wait_but_one();
		__syncthreads();
		float s[groups][2][4] = {}, top[2] = {NEVER, NEVER}, shrink[2];
		unsigned p[groups][4];
		if (active && mine < n) {
			multiply_keys<DIM, groups>(s, q, box.keys + mine * S::stride, n - mine);
			find_tops<groups>(top, s, rows, w, base + mine);
		}
		if (WIDE) __syncthreads();
		else share_tops(top, box);
		if (base + S::chunk < t.end) copy_chunk<DIM>(box.keys, w.keys, w, t, base + S::chunk, t.end);
		else copies_end();
		if (active) {
			weigh<groups>(p, shrink, s, rows, top);
			sums.shrink(shrink);
		}
		if (!WIDE && mine < n) store_weights(box, p[0]);
		copies_wait_but_one();
		__syncthreads();
#pragma unroll
		for (int g = 0; g < S::groups; g++) {
			if (!active || 16 * g >= n) break;
			if (!WIDE) load_matrices(p[0], box.weights + threadIdx.x % 16 * S::weights_stride + threadIdx.x % 32 / 16 * 4 + 8 * g);
			sums.add(p[WIDE ? g : 0], box.values + 16 * g * S::stride);
		}
		__syncthreads();
	}
}

// store_row adds a section of row r to its output, which lies undivided at to until the
// last section that the row sees, or copies it there.
template <int DIM, bool WIDE> static __device__ __forceinline__ void store_row(float *to, const Sums<DIM, WIDE> &sums, Running &running, int r, float top, bool last, bool copy) {
	bool begun = running.top != NEVER;
	float keep, by;
	running.add(top, sums.weights[2 * r], keep, by);
#pragma unroll
	for (int i = 0; i < sums.owned * 2; i++) {
		int pair = sums.first + i / 2 * sums.step;
		if (pair >= Shape<DIM>::pairs) break;
		float2 *at = (float2 *)(to + 16 * pair + i % 2 * 8 + threadIdx.x % 4 * 2), total = {0, 0};
		const float *v = &sums.v[i / 2][i % 2][2 * r];
		if (copy) {
			*at = {v[0], v[1]};
			continue;
		}
		if (begun) total = *at;
		total.x = total.x * keep + v[0] * by;
		total.y = total.y * keep + v[1] * by;
		if (last) total = {total.x / running.sum, total.y / running.sum};
		*at = total;
	}
}

// store_section adds a section to the outputs, or leaves it in partial.
template <int DIM, bool WIDE> static __device__ __forceinline__ void store_section(float *out, float *partial, const Sums<DIM, WIDE> &sums, Rows &rows, const Tile &t, int section) {
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
	for (int r = 0; r < 2; r++) {
		int i = (WIDE ? 16 * warp : 0) + lane / 4 + 8 * r;
		if (i >= t.count) continue;
		// Maxima are those of scores times log2(e).
		float top = rows.top[r] * ln_2, *to = out + t.at(i) * DIM;
		bool last = (rows.end[r] - 1) / section_tokens == section;
		if (t.split) {
			to = partial + (t.at(i) * gridDim.z + section) * (DIM + 2);
			if (lane % 4 == 0 && (WIDE || warp == 0)) *(float2 *)to = {top, sums.weights[2 * r]};
			to += 2;
		}
		if (t.split || last || top != NEVER) store_row(to, sums, rows.before[r], r, top, last, t.split);
	}
}

template <int DIM, bool WIDE, class C> static __device__ __forceinline__ void attend_tile(float *out, float *partial, const float *q, const View<C> &w, const Box<DIM> &box, const Tile &t) {
	int base = WIDE ? threadIdx.x / 32 * 16 : 0;
	copy_chunk<DIM>(box.keys, w.keys, w, t, t.begin, t.end);
	load_queries(box, q, t, WIDE ? tile_rows : 16);
	__syncthreads();
	Queries<DIM> queries(box, base);
	Rows rows;
	rows.open(w, t, box, base);
	Sums<DIM, WIDE> sums;
	sums.first = WIDE ? 0 : threadIdx.x / 32;
	__syncthreads();
	for (int section = t.section; section <= t.last; section++) {
		attend_section(sums, rows, w, box, queries, t, max(t.begin, section * section_tokens), min(t.end, (section + 1) * section_tokens));
		store_section(out, partial, sums, rows, t, section);
	}
}

template <int DIM, class C> static __device__ __forceinline__ void attend(float *out, float *partial, const float *q, const View<C> &w, const int4 *spans, const int2 *tiles) {
	DYNAMIC_SHARED(uint4, memory);
	int2 tile = tiles[blockIdx.x];
	Tile t;
	t.span = spans[tile.x];
	t.head = blockIdx.y;
	t.heads = w.heads;
	t.group = w.heads / w.kvheads;
	t.first = tile.y;
	t.count = min(tile_rows, t.span.y * t.group - t.first);
	t.begin = w.begin(t.span, t.first / t.group) / Shape<DIM>::chunk * Shape<DIM>::chunk;
	t.end = w.end(t.span, (t.first + t.count - 1) / t.group);
	t.section = t.begin / section_tokens;
	t.last = (t.end - 1) / section_tokens;
	t.split = gridDim.z > 1;
	if (t.split) {
		if ((int)blockIdx.z < t.section || (int)blockIdx.z > t.last) return;
		t.section = t.last = blockIdx.z;
		t.begin = max(t.begin, t.section * section_tokens);
		t.end = min(t.end, (t.section + 1) * section_tokens);
	}
	Box<DIM> box((unsigned *)memory);
	if (t.count > 16) attend_tile<DIM, true>(out, partial, q, w, box, t);
	else attend_tile<DIM, false>(out, partial, q, w, box, t);
}

// attend_*_DIMx64 takes what attend_* does (see attend.cu), 128 threads, and the shared
// memory of Box, of which the queries at the end are 64 rows, or 16 where no tile is wide.
#define ATTEND_TENSOR(head_dim, name, RowsOf, CACHE)                                                                                                    \
	extern "C" __global__ void __launch_bounds__(threads) attend_##name##_##head_dim##x64(float *out, float *partial, const float *q, CACHE##_CACHE_PARAMS, ATTEND_PARAMS) { \
		View<RowsOf> w = {CACHE##_KEYS, CACHE##_VALUES, tables, heads, kvheads, dim, scale, cap, window, causal};                                           \
		attend<head_dim>(out, partial, q, w, spans, tiles);                                                                                                \
	}                                                                                                                                                      \
	EXPORT(attend_##name##_##head_dim##x64)
#define ATTEND_TENSORS(head_dim)                             \
	ATTEND_TENSOR(head_dim, f16, HalfRows, HALF)             \
	ATTEND_TENSOR(head_dim, q8_0, CodedRows<ByteRows>, BYTE) \
	ATTEND_TENSOR(head_dim, fp8, CodedRows<Fp8Rows>, FP8)

// Heads of 32 dimensions are those of small encoders, whose keys and values are halves.
ATTEND_TENSOR(32, f16, HalfRows, HALF)
ATTEND_TENSORS(64)
ATTEND_TENSORS(128)
ATTEND_TENSORS(256)
