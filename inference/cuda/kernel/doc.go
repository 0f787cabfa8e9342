// Package kernel holds the device's kernels: CUDA C++ sources, and the PTX they
// compile to, which is committed so that nobody needs a compiler to build ragd.
// One PTX for compute capability 7.0 serves every later device: the driver compiles
// it for the device at hand.
//
// `make generate-cuda` rewrites kernels.ptx, `make test-cuda` compares it byte for
// byte.
package kernel
