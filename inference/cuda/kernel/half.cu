// Products on tensor cores in half precision, for compute capability 8.0 and later (PTX
// ISA, mma.m16n8k16 with .f16 and sums in .f32): f16 matrices as they are, and quantised
// ones, whose codes become f16 in registers. Scales then cost something for each weight,
// where the products of int8 (tensor.cu) pay for each sum of 32 columns.
//
// The mma's columns need not be the matrix's in order, as long as both sides agree. In a
// round of 128 columns a lane has 32 of a weight row: a block of codes with one or two
// scales, read in loads of 16 bytes. The round is eight mma, mma m taking columns 4m to
// 4m+3 of every lane's block.
//
// Every element is summed in one order, whatever the kernel and the number of rows: the
// 16 mma of a span of 256 columns in turn, starting at 0; then the spans, each times its
// scale, in turn by fmaf. Kernels for few rows let the warps of a block take the spans,
// which meet in shared memory; the one for many lets a warp take all of them.
#include "format.cuh"
#include "half.cuh"
#include "output.cuh"

static const int half_warps = 8;

// twice is a value as f16 in both halves of a word.
static __device__ __forceinline__ unsigned twice(float v) { return 0x10001u * float_to_half(v); }

// Coded is a lane's 32 columns of a weight row. Weights are brought to the range of f16 by
// a power of two, factor, that the matrix has as a whole; what is rounded is scale and
// min, and the weight once more: by 2^-11 of them at the most.
template <class F> struct Coded {
	unsigned words[F::bits];
	unsigned scale[2], min; // of columns 0 to 15 and 16 to 31

	// load reads a block; those from blocks on are zeros.
	__device__ __forceinline__ void load(const Weights &w, float factor, int row, int block, int blocks) {
		Scale k = {0.0f, 0.0f, 0, 0};
		uint4 c[F::bits / 4] = {};
		if (block < blocks) {
			size_t at = (size_t)row * blocks + block;
			k = F::scale(w, at);
#pragma unroll
			for (int i = 0; i < F::bits / 4; i++) c[i] = w.codes[F::bits / 4 * at + i];
		}
#pragma unroll
		for (int i = 0; i < F::bits / 4; i++) {
			words[4 * i] = c[i].x;
			words[4 * i + 1] = c[i].y;
			words[4 * i + 2] = c[i].z;
			words[4 * i + 3] = c[i].w;
		}
		scale[0] = twice(factor * (k.d * (float)k.s0));
		scale[1] = twice(factor * (k.d * (float)k.s1));
		min = twice(factor * k.min);
	}

	// columns are 8p to 8p+7, in the order 0, 2, 1, 3, 4, 6, 5, 7. A code becomes f16 by
	// standing in the fraction of one: above 1024 where its lowest bit is bit 0, above 64
	// where it is bit 4. Taking that away is exact.
	__device__ __forceinline__ void columns(unsigned (&h)[4], int p) const {
		unsigned s = scale[p / 2];
#pragma unroll
		for (int i = 0; i < 4; i++) {
			unsigned code, base;
			if (F::bits == 8) {
				code = __byte_perm(words[(2 * p + i / 2) % F::bits] ^ 0x80808080u, 0x64646464u, i % 2 ? 0x4341 : 0x4240);
				base = 0x64806480u; // 1024 + 128
			} else {
				unsigned mask = p < 2 ? 0x000f000fu : 0x00f000f0u;
				base = p < 2 ? 0x64006400u : 0x54005400u;
				code = (words[2 * (p % 2) + i / 2] >> (i % 2 * 8) & mask) | base;
			}
			h[i] = fma_halves(sub_halves(code, base), s, min);
		}
	}
};

template <> struct Coded<PlainF16> {
	const uint4 *at; // null for zeros

	__device__ __forceinline__ void load(const Weights &w, float, int row, int block, int blocks) { at = block < blocks ? w.codes + 4 * ((size_t)row * blocks + block) : 0; }

	__device__ __forceinline__ void columns(unsigned (&h)[4], int p) const {
		uint4 v = at ? at[p] : make_uint4(0, 0, 0, 0);
		h[0] = __byte_perm(v.x, v.y, 0x5410);
		h[1] = __byte_perm(v.x, v.y, 0x7632);
		h[2] = __byte_perm(v.z, v.w, 0x5410);
		h[3] = __byte_perm(v.z, v.w, 0x7632);
	}
};

// Input is activations as half.cuh has them.
struct Input {
	const uint4 *x;
	const float *scale;
	int n, tiles, spans;

	// fragments are those of two mma: columns 8p to 8p+7 of each lane's block. Of rows that
	// are not there nothing is read: one row would cost the caches as much as eight.
	__device__ __forceinline__ uint4 fragments(int tile, int round, int p) const {
		int lane = threadIdx.x % 32;
		return 8 * tile + lane / 4 < n ? x[(((size_t)tile * 2 * spans + round) * 4 + p) * 32 + lane] : make_uint4(0, 0, 0, 0);
	}
	__device__ __forceinline__ float scale_of(int tile, int span, int row) const { return scale[((size_t)tile * spans + span) * 8 + row]; }
};

// Tile is a lane's share of ROWS × COLUMNS fragments of 16 × 8: elements 0 and 1 of one
// lie in row lane/4, columns 2·(lane%4) and the next; 2 and 3 lie 8 rows below.
template <int ROWS, int COLUMNS> struct Tile {
	float v[ROWS][COLUMNS][4];

	__device__ __forceinline__ void clear() {
#pragma unroll
		for (int i = 0; i < ROWS * COLUMNS * 4; i++) (&v[0][0][0])[i] = 0.0f;
	}
};

// add_round adds a round's eight mma.
template <class F, int ROWS, int COLUMNS> static __device__ __forceinline__ void add_round(Tile<ROWS, COLUMNS> &part, const Coded<F> (&w)[ROWS][2], const Input &in, int tile, int round) {
#pragma unroll
	for (int p = 0; p < 4; p++) {
		unsigned a[ROWS][2][4];
#pragma unroll
		for (int r = 0; r < ROWS; r++) {
			unsigned top[4], bottom[4];
			w[r][0].columns(top, p);
			w[r][1].columns(bottom, p);
#pragma unroll
			for (int i = 0; i < 4; i++) {
				a[r][i / 2][i % 2 * 2] = top[i];
				a[r][i / 2][i % 2 * 2 + 1] = bottom[i];
			}
		}
#pragma unroll
		for (int c = 0; c < COLUMNS; c++) {
			if (tile + c >= in.tiles) break;
			uint4 b = in.fragments(tile + c, round, p);
#pragma unroll
			for (int r = 0; r < ROWS; r++) {
				mma_half(part.v[r][c], a[r][0], b.x, b.y);
				mma_half(part.v[r][c], a[r][1], b.z, b.w);
			}
		}
	}
}

// sum_span is a span's sums for the weight rows from top. AHEAD says how many of its two
// rounds are loaded before the first is computed. Rows beyond the last repeat it.
template <class F, int AHEAD, int ROWS, int COLUMNS>
static __device__ __forceinline__ void sum_span(Tile<ROWS, COLUMNS> &part, const Weights &w, float factor, const Input &in, int top, int rows, int blocks, int tile, int span) {
	int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
	part.clear();
#pragma unroll 1
	for (int first = 2 * span; first < 2 * span + 2; first += AHEAD) {
		Coded<F> coded[AHEAD][ROWS][2];
#pragma unroll
		for (int i = 0; i < AHEAD * ROWS * 2; i++) {
			int round = first + i / (2 * ROWS), r = i / 2 % ROWS, below = i % 2 * 8;
			coded[i / (2 * ROWS)][r][i % 2].load(w, factor, min(top + 16 * r + g + below, rows - 1), 4 * round + t, blocks);
		}
#pragma unroll
		for (int i = 0; i < AHEAD; i++)
			if (4 * (first + i) < blocks) add_round(part, coded[i], in, tile, first + i);
	}
}

// multiply_few: the warps of a block take spans in turn. Their sums meet in shared memory,
// those of most spans at a time.
template <class F, int ROWS, int COLUMNS> static __device__ __forceinline__ void multiply_few(const Weights &w, float factor, float back, const Input &in, const Output &o, int rows, int cols, int n) {
	DYNAMIC_SHARED(float, memory);
	const int most = 64 / (ROWS * COLUMNS), size = 128 * ROWS * COLUMNS, threads = 32 * half_warps, each = (size + threads - 1) / threads;
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32, top = 16 * ROWS * blockIdx.x, tile = COLUMNS * blockIdx.y;
	float sum[each] = {};
#pragma unroll 1
	for (int base = 0; base < in.spans; base += most) {
		int count = min(most, in.spans - base);
#pragma unroll 1
		for (int s = warp; s < count; s += half_warps) {
			Tile<ROWS, COLUMNS> part;
			sum_span<F, ROWS == 1 ? 2 : 1>(part, w, factor, in, top, rows, cols / 32, tile, base + s);
#pragma unroll
			for (int i = 0; i < size / 32; i++) memory[s * size + i / 4 * 128 + 4 * lane + i % 4] = (&part.v[0][0][0])[i];
		}
		__syncthreads();
#pragma unroll
		for (int i = 0; i < each; i++) {
			int at = threadIdx.x + threads * i, c = at / 128 % COLUMNS, row = at % 128 / 4 % 4 * 2 + at % 2;
			if (at >= size || tile + c >= in.tiles) continue;
			for (int s = 0; s < count; s++) sum[i] = fmaf(memory[s * size + at], in.scale_of(tile + c, base + s, row), sum[i]);
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < each; i++) {
		int at = threadIdx.x + threads * i, in_tile = at % 128;
		int row = top + at / 128 / COLUMNS * 16 + in_tile / 16 + in_tile / 2 % 2 * 8, column = 8 * (tile + at / 128 % COLUMNS) + in_tile / 4 % 4 * 2 + at % 2;
		if (at < size && row < rows && column < n) o.put(column, row, sum[i] * back);
	}
}

// multiply_many: a warp takes all columns of 32 weight rows for 64 rows of activations.
template <class F> static __device__ __forceinline__ void multiply_many(const Weights &w, float factor, float back, const Input &in, const Output &o, int rows, int cols, int n) {
	const int row_tiles = 2, column_tiles = 8;
	int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	int top = 16 * row_tiles * (half_warps * blockIdx.x + threadIdx.x / 32), tile = column_tiles * blockIdx.y;
	if (top >= rows) return;
	Tile<row_tiles, column_tiles> sum, part;
	sum.clear();
#pragma unroll 1
	for (int s = 0; s < in.spans; s++) {
		sum_span<F, 1>(part, w, factor, in, top, rows, cols / 32, tile, s);
#pragma unroll
		for (int c = 0; c < column_tiles; c++) {
			if (tile + c >= in.tiles) break;
			float scale[2] = {in.scale_of(tile + c, s, 2 * t), in.scale_of(tile + c, s, 2 * t + 1)};
#pragma unroll
			for (int i = 0; i < 4 * row_tiles; i++) sum.v[i / 4][c][i % 4] = fmaf(part.v[i / 4][c][i % 4], scale[i % 2], sum.v[i / 4][c][i % 4]);
		}
	}
#pragma unroll
	for (int i = 0; i < 4 * row_tiles * column_tiles; i++) {
		int r = i / 4 / column_tiles, c = i / 4 % column_tiles, row = top + 16 * r + g + i / 2 % 2 * 8, column = 8 * (tile + c) + 2 * t + i % 2;
		if (row < rows && column < n) o.put(column, row, sum.v[r][c][i % 4] * back);
	}
}

#define HALF_PARAMS WEIGHTS_PARAMS, const uint4 *x, const float *scale, float factor, float back, OUTPUT_PARAMS
#define HALF_ARGUMENTS                   \
	Weights w = WEIGHTS;                  \
	Output o = {bias, out, sum, stride}; \
	Input in = {x, scale, n, (n + 7) / 8, (cols + span_columns - 1) / span_columns};

// product_*_half_8, _32 and _64 take so many rows of activations a block, and 256 threads.
// Blocks along x are tiles of 16, 32 and 256 weight rows. The first two take 512 and 4096
// bytes of shared memory for each span, up to 64 and 8 of them.
#define HALF_PRODUCTS(name, format)                                                                                                         \
	extern "C" __global__ void __launch_bounds__(256) product_##name##_half_8(HALF_PARAMS) {                                                 \
		HALF_ARGUMENTS                                                                                                                       \
		multiply_few<format, 1, 1>(w, factor, back, in, o, rows, cols, n);                                                             \
	}                                                                                                                                        \
	EXPORT(product_##name##_half_8)                                                                                                          \
	extern "C" __global__ void __launch_bounds__(256, 1) product_##name##_half_32(HALF_PARAMS) {                                                \
		HALF_ARGUMENTS                                                                                                                       \
		multiply_few<format, 2, 4>(w, factor, back, in, o, rows, cols, n);                                                             \
	}                                                                                                                                        \
	EXPORT(product_##name##_half_32)                                                                                                         \
	extern "C" __global__ void __launch_bounds__(256) product_##name##_half_64(HALF_PARAMS) {                                                \
		HALF_ARGUMENTS                                                                                                                       \
		multiply_many<format>(w, factor, back, in, o, rows, cols, n);                                                                        \
	}                                                                                                                                        \
	EXPORT(product_##name##_half_64)

HALF_PRODUCTS(f16, PlainF16)
HALF_PRODUCTS(q4_0, Q4_0)
HALF_PRODUCTS(q4_1, Q4_1)
HALF_PRODUCTS(q8_0, Q8_0)
HALF_PRODUCTS(q5_1, Q5_1)
HALF_PRODUCTS(q4_k, Q4_K)
HALF_PRODUCTS(q5_k, Q5_K)
HALF_PRODUCTS(q6_k, Q6_K)
