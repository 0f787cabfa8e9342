//go:build cuda && cgo

#include "extra.h"

#include <stdint.h>

CUresult ragd_launch(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned shared, CUstream s, void *args, size_t size) {
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
	return cuLaunchKernel(f, x, y, z, threads, 1, 1, shared, s, NULL, extra);
}

CUresult ragd_load_ptx(CUmodule *module, const char *image, char *log, size_t size) {
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)size};
	return cuModuleLoadDataEx(module, image, 2, options, values);
}

CUresult ragd_copy_rows(CUdeviceptr device, size_t pitch, void *host, size_t size, size_t count, int up, CUstream s) {
	CUDA_MEMCPY2D c = {0};
	c.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	c.dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	c.srcHost = c.dstHost = host;
	c.srcDevice = c.dstDevice = device;
	c.srcPitch = up ? size : pitch;
	c.dstPitch = up ? pitch : size;
	c.WidthInBytes = size;
	c.Height = count;
	return cuMemcpy2DAsync(&c, s);
}
