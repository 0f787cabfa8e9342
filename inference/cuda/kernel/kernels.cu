// All kernels, compiled as one: kernels.ptx is this file's (see the Makefile).
#include "append.cu"
#include "attend.cu"
#include "best.cu"
#include "embed.cu"
#include "product.cu"
#include "rows.cu"
