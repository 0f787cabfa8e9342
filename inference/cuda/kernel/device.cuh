// What the kernels use of the device, so that the simulated driver can compile the
// same sources: it defines RAGD_SIM and includes its own versions of these.
#pragma once

#ifdef RAGD_SIM
#include "sim.h"
#else

// EXPORT names a kernel for the simulated driver.
#define EXPORT(name)
// SHARED is a fixed array, DYNAMIC_SHARED the one that the launch sizes.
#define SHARED(type, name, n) __shared__ type name[n]
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]

typedef unsigned short half_bits;

static __device__ __forceinline__ float half_to_float(half_bits h) {
	float f;
	asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
	return f;
}

static __device__ __forceinline__ half_bits float_to_half(float f) {
	half_bits h;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
	return h;
}

// dot4 is c + the products of four signed bytes. (NVRTC 12.1 leaves __dp4a
// unresolved, so this is the instruction itself.)
static __device__ __forceinline__ int dot4(unsigned a, unsigned b, int c) {
	int r;
	asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
	return r;
}

static __device__ __forceinline__ int dot16(uint4 a, uint4 b) {
	return dot4(a.w, b.w, dot4(a.z, b.z, dot4(a.y, b.y, dot4(a.x, b.x, 0))));
}

static const unsigned all_lanes = 0xffffffffu;

// warp_sum and warp_max reduce over the 32 lanes of a warp, every one of which has
// to call; all get the result, summed as a balanced tree.
static __device__ __forceinline__ float warp_sum(float v) {
	for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(all_lanes, v, d);
	return v;
}

static __device__ __forceinline__ float warp_max(float v) {
	for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(all_lanes, v, d));
	return v;
}

// lane_sum adds the lanes: those that are 8 apart one after the other, then these
// eight as a tree. Lanes 0 to 7 get the result.
static __device__ __forceinline__ float lane_sum(float v) {
	float sum = v + __shfl_down_sync(all_lanes, v, 8);
	sum += __shfl_down_sync(all_lanes, v, 16);
	sum += __shfl_down_sync(all_lanes, v, 24);
	for (int d = 4; d > 0; d /= 2) sum += __shfl_xor_sync(all_lanes, sum, d);
	return sum;
}

// group_max and group_sum reduce over groups of eight lanes.
static __device__ __forceinline__ unsigned group_max(unsigned v) {
	for (int d = 4; d > 0; d /= 2) v = max(v, __shfl_xor_sync(all_lanes, v, d));
	return v;
}

static __device__ __forceinline__ int group_sum(int v) {
	for (int d = 4; d > 0; d /= 2) v += __shfl_xor_sync(all_lanes, v, d);
	return v;
}

// quad_max reduces over groups of four lanes.
static __device__ __forceinline__ float quad_max(float v) {
	for (int d = 2; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(all_lanes, v, d));
	return v;
}

// mma_k32 and mma_k16 add the product of 16 × 32 (16 × 16) and 32 × 8 (16 × 8) signed
// bytes to 16 × 8 integers that a warp holds as fragments (PTX ISA, "Matrix Fragments for
// mma.m16n8k32" and "mma.m16n8k16"). All lanes have to call.
#if __CUDA_ARCH__ >= 800
static __device__ __forceinline__ void mma_k32(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
	asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ __forceinline__ void mma_k16(int (&c)[4], unsigned a0, unsigned a1, unsigned b) {
	asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
		: "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
		: "r"(a0), "r"(a1), "r"(b));
}

// mma_half adds the product of 16 × 16 and 16 × 8 values of f16 to 16 × 8 floats ("Matrix
// Fragments for mma.m16n8k16 with floating point type").
static __device__ __forceinline__ void mma_half(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
	asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// pack_halves makes two floats halves, the first of them the lower one.
static __device__ __forceinline__ unsigned pack_halves(float low, float high) {
	unsigned r;
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
	return r;
}

// load_matrices reads four matrices of 8 × 8 halves from shared memory: lane l says where
// row l%8 of matrix l/8 lies, at a multiple of 16 bytes, and gets of each matrix elements
// 2·(l%4) and the next of row l/4, or, transposed, those of column l/4.
#define LOAD_MATRICES(name, transposed)                                                                            \
	static __device__ __forceinline__ void name(unsigned (&r)[4], const unsigned *row) {                              \
		asm volatile("ldmatrix.sync.aligned.m8n8.x4" transposed ".shared.b16 {%0, %1, %2, %3}, [%4];"                 \
					 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                                                 \
					 : "r"((unsigned)__cvta_generic_to_shared(row))                                                   \
					 : "memory");                                                                                     \
	}
LOAD_MATRICES(load_matrices, "")
LOAD_MATRICES(load_transposed, ".trans")

// copy_async begins to copy 16 bytes to shared memory, past the registers. copies_end ends
// a group of a thread's copies; copies_wait_but_one waits for all groups but the newest.
static __device__ __forceinline__ void copy_async(uint4 *to, const void *from) {
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
static __device__ __forceinline__ void copies_end() { asm volatile("cp.async.commit_group;" ::: "memory"); }
static __device__ __forceinline__ void copies_wait_but_one() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }
#endif

// sub_halves and fma_halves compute on two values of f16 a word: a - b, a·b + c.
static __device__ __forceinline__ unsigned sub_halves(unsigned a, unsigned b) {
	unsigned r;
	asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
	return r;
}

static __device__ __forceinline__ unsigned fma_halves(unsigned a, unsigned b, unsigned c) {
	unsigned r;
	asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
	return r;
}

#endif

static __device__ __forceinline__ float bf16_to_float(half_bits h) { return __uint_as_float((unsigned)h << 16); }

// block_sum adds a value of every thread of the block; all get the result.
static __device__ __forceinline__ float block_sum(float v) {
	SHARED(float, part, 32);
	v = warp_sum(v);
	__syncthreads();
	if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
	__syncthreads();
	float sum = 0;
	for (int i = 0; i < (int)blockDim.x / 32; i++) sum += part[i];
	return sum;
}
