// Package cudrv is the CUDA driver as the device backend needs it: devices, their
// memory, modules, streams, events, launches and graphs, through gorgonia.org/cu
// and, for what that lacks, a little C.
//
// The driver library is opened at run time (Open), never linked: one binary built
// with the tag runs with and without it. shim_gen.c defines every driver function
// as a call into the opened library; lib/libcuda.a is an empty archive that
// satisfies the -lcuda which gorgonia.org/cu asks of the linker.
//
// Everything but this page needs the build tag cuda and cgo.
package cudrv
