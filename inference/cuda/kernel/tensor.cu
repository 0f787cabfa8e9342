// Products with many rows of activations on tensor cores, for compute capability 8.0
// and later (PTX ISA, mma.m16n8k32 and mma.m16n8k16 with .s8). A block of 32 columns is
// one mma of int8 codes, whose sums are exact; scales are applied to them as the plain
// kernels do and the blocks of a row are added in the same order, so the bits are the
// same as theirs.
//
// Thread block: 64 weight rows for 32 rows of activations. The eight warps share the
// tile and take the columns in turn: warp w has what the lanes w, w+8, w+16 and w+24 of
// the plain kernel have, one lane's after the other's.
#include "format.cuh"
#include "output.cuh"

static const int row_tiles = 4, column_tiles = 4; // of 16 and of 8
static const int tile_rows = 16 * row_tiles, tile_columns = 8 * column_tiles;

// Part is a thread's share of the tile: element 0 and 1 of a row tile lie in row
// lane/4, columns 2·(lane%4) and the next; 2 and 3 lie 8 rows below.
struct Part {
	float v[row_tiles][column_tiles][4];

	__device__ __forceinline__ void clear() {
#pragma unroll
		for (int i = 0; i < row_tiles * column_tiles * 4; i++) (&v[0][0][0])[i] = 0.0f;
	}
	__device__ __forceinline__ void add(const Part &p) {
#pragma unroll
		for (int i = 0; i < row_tiles * column_tiles * 4; i++) (&v[0][0][0])[i] += (&p.v[0][0][0])[i];
	}
};

// codes_of loads the A fragment of a block: rows lane/4 (block top) and 8 below (bottom).
template <class F> static __device__ __forceinline__ void codes_of(unsigned (&a)[4], const Weights &w, size_t top, size_t bottom) {
	const unsigned *words = (const unsigned *)w.codes, low = 0x0f0f0f0fu;
	int t = threadIdx.x % 4;
	if (F::bits == 8) {
		a[0] = words[8 * top + t];
		a[1] = words[8 * bottom + t];
		a[2] = words[8 * top + 4 + t];
		a[3] = words[8 * bottom + 4 + t];
		return;
	}
	unsigned x = words[4 * top + t], y = words[4 * bottom + t];
	a[0] = x & low;
	a[1] = y & low;
	a[2] = x >> 4 & low;
	a[3] = y >> 4 & low;
}

// dots are the scaled integer dot products of a tile: those of the two halves of the
// columns have scales of their own where a format has two.
template <class F> static __device__ __forceinline__ void dots(int (&dot)[4], const unsigned (&a)[4], const unsigned (&b)[2], const Scale &top, const Scale &bottom) {
	int lo[4] = {0, 0, 0, 0}, hi[4] = {0, 0, 0, 0};
	if (F::scales == 2) {
		mma_k16(lo, a[0], a[1], b[0]);
		mma_k16(hi, a[2], a[3], b[1]);
	} else {
		mma_k32(lo, a, b);
	}
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const Scale &k = i < 2 ? top : bottom;
		dot[i] = lo[i] * k.s0 + hi[i] * k.s1;
	}
}

// Acts of the tile's columns: the B fragments of a block and the scales of the columns
// that a thread's elements lie in.
struct Columns {
	unsigned q[column_tiles][2];
	float d[column_tiles][2], s[column_tiles][2];

	__device__ __forceinline__ void load(const unsigned *q8, const float *qd, const float *qs, int first, int n, int blocks, int b) {
		int lane = threadIdx.x % 32;
#pragma unroll
		for (int c = 0; c < column_tiles; c++) {
			const unsigned *at = q8 + 8 * ((size_t)min(first + 8 * c + lane / 4, n - 1) * blocks + b);
			q[c][0] = at[lane % 4];
			q[c][1] = at[4 + lane % 4];
#pragma unroll
			for (int i = 0; i < 2; i++) {
				size_t block = (size_t)min(first + 8 * c + 2 * (lane % 4) + i, n - 1) * blocks + b;
				d[c][i] = qd[block];
				s[c][i] = qs[block];
			}
		}
	}
};

// add_block adds block b of every row to the tile. Rows and columns beyond the ends
// repeat the last ones and are not stored.
template <class F> static __device__ __forceinline__ void add_block(Part &part, const Weights &w, const Columns &x, int top_row, int rows, int first, int n, int blocks, int b) {
	int g = threadIdx.x % 32 / 4;
#pragma unroll
	for (int r = 0; r < row_tiles; r++) {
		if (top_row + 16 * r >= rows) break;
		size_t top = (size_t)min(top_row + 16 * r + g, rows - 1) * blocks + b, bottom = (size_t)min(top_row + 16 * r + g + 8, rows - 1) * blocks + b;
		unsigned a[4];
		codes_of<F>(a, w, top, bottom);
		Scale upper = F::scale(w, top), lower = F::scale(w, bottom);
#pragma unroll
		for (int c = 0; c < column_tiles; c++) {
			if (first + 8 * c >= n) break;
			int dot[4];
			dots<F>(dot, a, x.q[c], upper, lower);
#pragma unroll
			for (int i = 0; i < 4; i++) {
				const Scale &k = i < 2 ? upper : lower;
				float &acc = part.v[r][c][i];
				acc = fmaf((float)dot[i], k.d * x.d[c][i % 2], acc);
				acc = fmaf(k.min, x.s[c][i % 2], acc);
			}
		}
	}
}

// join_warps sums the warps' parts as a tree; warp 0 has the result.
static __device__ __forceinline__ void join_warps(Part &part, float *memory) {
	int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const int size = tile_rows * tile_columns;
	for (int half = lane_groups / 2; half > 0; half /= 2) {
		float *at = memory + warp % half * size + lane;
		if (warp >= half && warp < 2 * half)
#pragma unroll
			for (int i = 0; i < size / 32; i++) at[32 * i] = (&part.v[0][0][0])[i];
		__syncthreads();
		if (warp < half)
#pragma unroll
			for (int i = 0; i < size / 32; i++) (&part.v[0][0][0])[i] += at[32 * i];
		__syncthreads();
	}
}

static __device__ __forceinline__ void store(const Part &part, const Output &o, int top_row, int rows, int first, int n) {
	int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
	for (int r = 0; r < row_tiles; r++)
#pragma unroll
		for (int c = 0; c < column_tiles; c++)
#pragma unroll
			for (int i = 0; i < 4; i++) {
				int row = top_row + 16 * r + g + i / 2 * 8, column = first + 8 * c + 2 * t + i % 2;
				if (row < rows && column < n) o.put(column, row, part.v[r][c][i]);
			}
}

template <class F> static __device__ __forceinline__ void multiply_tensor(const Weights &w, const unsigned *q, const float *qd, const float *qs, const Output &o, int rows, int cols, int n) {
	DYNAMIC_SHARED(float, memory);
	int warp = threadIdx.x / 32, blocks = cols / 32, top_row = blockIdx.x * tile_rows, first = blockIdx.y * tile_columns;
	Part sum, part;
#pragma unroll 1
	for (int lane = warp; lane < 32; lane += lane_groups) {
		part.clear();
#pragma unroll 1
		for (int b = lane; b < blocks; b += 32) {
			Columns x;
			x.load(q, qd, qs, first, n, blocks, b);
			add_block<F>(part, w, x, top_row, rows, first, n, blocks, b);
		}
		if (lane == warp) sum = part;
		else sum.add(part);
	}
	join_warps(sum, memory);
	if (warp == 0) store(sum, o, top_row, rows, first, n);
}

// product_*_tensor takes 256 threads and tile_rows · tile_columns · 4 floats of shared
// memory; blocks along x are tiles of weight rows, along y tiles of activation rows.
#define TENSOR_PRODUCT(name, format)                                                                                                         \
	extern "C" __global__ void __launch_bounds__(256) product_##name##_tensor(WEIGHTS_PARAMS, const unsigned *q, const float *qd, const float *qs, OUTPUT_PARAMS) { \
		Weights w = WEIGHTS;                                                                                                                 \
		Output o = {bias, out, sum, stride};                                                                                                 \
		multiply_tensor<format>(w, q, qd, qs, o, rows, cols, n);                                                                             \
	}                                                                                                                                        \
	EXPORT(product_##name##_tensor)

TENSOR_PRODUCT(q4_0, Q4_0)
TENSOR_PRODUCT(q4_1, Q4_1)
TENSOR_PRODUCT(q8_0, Q8_0)
TENSOR_PRODUCT(q5_1, Q5_1)
TENSOR_PRODUCT(q4_k, Q4_K)
TENSOR_PRODUCT(q5_k, Q5_K)
TENSOR_PRODUCT(q6_k, Q6_K)
