// Kernels that do what kernels must not, and one that is right, for the tests of the
// simulated driver.
#include "device.cuh"

// fill is right: out[i] = value.
extern "C" __global__ void fill(float *out, float value, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) out[i] = value;
}
EXPORT(fill)

// wild writes n floats past the start of out.
extern "C" __global__ void wild(float *out, int n) { out[n + threadIdx.x] = 1.0f; }
EXPORT(wild)

// diverged lets half of the threads wait at a barrier the others never reach.
extern "C" __global__ void diverged(float *out) {
	if (threadIdx.x % 2) {
		__syncthreads();
		out[threadIdx.x] = 1.0f;
	} else {
		out[threadIdx.x] = warp_sum(1.0f);
	}
}
EXPORT(diverged)

// half_warp sums over a warp of which half the lanes have gone.
extern "C" __global__ void half_warp(float *out) {
	if (threadIdx.x >= 16) return;
	out[threadIdx.x] = warp_sum(1.0f);
}
EXPORT(half_warp)

// neighbour reads what another thread wrote to shared memory, without a barrier.
extern "C" __global__ void neighbour(float *out) {
	DYNAMIC_SHARED(float, box);
	box[threadIdx.x] = threadIdx.x;
	out[threadIdx.x] = box[(threadIdx.x + 1) % blockDim.x];
}
EXPORT(neighbour)

// overrun writes past the end of the dynamic shared memory.
extern "C" __global__ void overrun(int n) {
	DYNAMIC_SHARED(float, box);
	box[n] = 1.0f;
}
EXPORT(overrun)

// sum is right: a block's sum of in, through shared memory and barriers.
extern "C" __global__ void sum(float *out, const float *in) {
	float v = block_sum(in[threadIdx.x]);
	if (threadIdx.x == 0) *out = v;
}
EXPORT(sum)

// Those below are for compute capability 8.0 and later, and empty for the compiler here.
#if defined(RAGD_SIM) || __CUDA_ARCH__ >= 800
#define NEW_DEVICE(...) __VA_ARGS__
#else
#define NEW_DEVICE(...)
#endif

// early copies its eight threads' numbers asynchronously, in two halves, and reads them
// when it has waited for the first half alone.
extern "C" __global__ void early(float *out) {
	NEW_DEVICE(DYNAMIC_SHARED(uint4, box); out[threadIdx.x] = threadIdx.x; __syncthreads();
			   copy_async(box, out); copies_end(); copy_async(box + 1, out + 4); copies_end();
			   copies_wait_but_one(); out[threadIdx.x] = ((float *)box)[threadIdx.x];)
}
EXPORT(early)

// misaligned loads matrices whose rows begin between multiples of 16 bytes.
extern "C" __global__ void misaligned(float *out) {
	NEW_DEVICE(DYNAMIC_SHARED(uint4, box); unsigned r[4]; load_matrices(r, (unsigned *)box + threadIdx.x % 2); out[threadIdx.x] = (float)r[0];)
}
EXPORT(misaligned)
