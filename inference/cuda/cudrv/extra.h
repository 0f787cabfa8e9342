// What gorgonia.org/cu has no call for.
#pragma once

#include <cuda.h>
#include <stddef.h>

// ragd_launch launches with one packed argument buffer.
CUresult ragd_launch(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned shared, CUstream s, void *args, size_t size);

// ragd_copy_rows copies count pieces of size bytes between device memory, where they lie
// pitch bytes apart, and pinned host memory, where they follow each other.
CUresult ragd_copy_rows(CUdeviceptr device, size_t pitch, void *host, size_t size, size_t count, int up, CUstream s);

// ragd_load_ptx compiles a module and writes the compiler's errors to log.
CUresult ragd_load_ptx(CUmodule *module, const char *image, char *log, size_t size);
