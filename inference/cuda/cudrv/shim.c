//go:build cuda && cgo

#include "shim.h"

#include <dlfcn.h>
#include <stddef.h>

static void *library;

void *ragd_driver_symbol(const char *name) { return library ? dlsym(library, name) : NULL; }

CUresult ragd_driver_missing(void) {
	return library ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
}

// cuInit succeeds while nothing is open: gorgonia.org/cu calls it before main and
// ends the process when it fails.
CUresult cuInit(unsigned int flags) {
	if (!library) return CUDA_SUCCESS;
	CUresult (*init)(unsigned int) = (CUresult(*)(unsigned int))ragd_driver_symbol("cuInit");
	return init ? init(flags) : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult ragd_driver_open(const char *path, const char **reason) {
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		*reason = dlerror();
		return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
	}
	CUresult r = cuInit(0);
	if (r == CUDA_SUCCESS) return r;
	*reason = "cuInit failed";
	const char *text = NULL;
	if (cuGetErrorString(r, &text) == CUDA_SUCCESS && text) *reason = text;
	// The library stays mapped: the functions found so far point into it.
	library = NULL;
	return r;
}
