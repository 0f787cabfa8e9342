// Looking rows of a table up.
#include "format.cuh"

template <class F> static __device__ __forceinline__ void embed(float *x, const Weights &w, const int *ids, float scale, int add, int width) {
	int c = blockIdx.y * blockDim.x + threadIdx.x;
	if (c >= width) return;
	float *at = x + (size_t)blockIdx.x * width + c;
	float v = scale * F::value(w, ids[blockIdx.x], c, width);
	*at = add ? *at + v : v;
}

// embed_* sets a row of x to scale times the table's row, or adds that.
#define EMBED(name, format)                                                                                             \
	extern "C" __global__ void embed_##name(float *x, WEIGHTS_PARAMS, const int *ids, float scale, int add, int width) { \
		Weights w = WEIGHTS;                                                                                             \
		embed<format>(x, w, ids, scale, add, width);                                                                     \
	}                                                                                                                    \
	EXPORT(embed_##name)

EMBED(f32, PlainF32)
EMBED(f16, PlainF16)
EMBED(bf16, PlainBF16)
EMBED(q4_0, Q4_0)
EMBED(q4_1, Q4_1)
EMBED(q8_0, Q8_0)
EMBED(q5_1, Q5_1)
EMBED(q4_k, Q4_K)
EMBED(q5_k, Q5_K)
EMBED(q6_k, Q6_K)
