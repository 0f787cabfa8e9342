// Package kernel holds the device's kernels: CUDA C++ sources, and the PTX they
// compile to, which is committed so that nobody needs a compiler to build ragd.
// kernels.ptx, for compute capability 7.0, serves every later device, too: the driver
// compiles it for the device at hand. tensor.ptx, half.ptx and attend_tensor.ptx, for 8.0,
// come on top where they run.
//
// `make generate-cuda` rewrites all, `make test-cuda` compares them byte for byte.
package kernel
