// Package simdriver tests the simulated CUDA driver: a libcuda.so.1 that runs the
// kernels' own sources on the CPU, so that the device backend is built and tested on
// machines without a GPU. Its C++ is in src, compiled by tools/simdriver.sh.
//
// What it checks that a device may hide: calls on a thread without the context;
// copies and kernels that leave an allocation; memory and shared memory that is read
// before it was written (it begins as NaN); work that nobody waited for (streams run
// only when they are waited for); asynchronous copies of memory that is not pinned;
// threads of a block that wait for each other for ever; barriers and warp operations
// in diverged code; kernels whose parameters are not those of the PTX; launches over
// the limits; errors that break a context; failures injected at any call.
//
// What it cannot: speed, occupancy, races between threads that a barrier would order
// (except by running the threads of a block in the opposite order), and whatever a
// real compiler and device do differently.
package simdriver
