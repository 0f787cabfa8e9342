//go:build cuda && cgo

package cudrv

/*
#include <stdlib.h>
#include "extra.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"gorgonia.org/cu"
)

// Module is loaded device code.
type Module struct{ m cu.Module }

const logBytes = 8 << 10

// LoadPTX compiles PTX for the device. A failure carries the compiler's log.
func LoadPTX(ptx string) (Module, error) {
	image := C.CString(ptx)
	defer C.free(unsafe.Pointer(image))
	log := make([]byte, logBytes)
	var m Module
	r := C.ragd_load_ptx((*C.CUmodule)(unsafe.Pointer(&m.m)), image, (*C.char)(unsafe.Pointer(&log[0])), logBytes)
	if err := code(r); err != nil {
		text, _, _ := strings.Cut(string(log), "\x00")
		return m, failed("compile kernels", fmt.Errorf("%w: %s", err, strings.TrimSpace(text)))
	}
	return m, nil
}

// Close unloads the code.
func (m Module) Close() error { return failed("unload kernels", m.m.Unload()) }

// Function is a kernel.
type Function struct{ f cu.Function }

// Function finds a kernel by name.
func (m Module) Function(name string) (Function, error) {
	f, err := m.m.Function(name)
	return Function{f}, failed("find kernel "+name, err)
}

// AllowShared lets launches of the kernel use so many bytes of dynamic shared
// memory; without it the limit is 48 KiB.
func (f Function) AllowShared(bytes int) error {
	r := C.cuFuncSetAttribute(f.c(), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes))
	return failed(fmt.Sprintf("allow %d bytes of shared memory", bytes), code(r))
}

// ID is a number of the kernel's own while its module is loaded.
func (f Function) ID() uint64 { return uint64(uintptr(unsafe.Pointer(f.c()))) }

// c bridges the C types of two packages: both structs hold the one pointer.
func (f Function) c() C.CUfunction { return *(*C.CUfunction)(unsafe.Pointer(&f.f)) }

// Grid is the shape of a launch: blocks, and threads in a block.
type Grid struct {
	X, Y, Z int // blocks
	Threads int // in each, along x
	Shared  int // bytes of dynamic shared memory
}

// Launch queues a kernel with packed arguments: each at a multiple of its size.
// The bytes may be reused on return.
func (s Stream) Launch(f Function, g Grid, args []byte) error {
	r := C.ragd_launch(f.c(), C.uint(g.X), C.uint(g.Y), C.uint(g.Z), C.uint(g.Threads), C.uint(g.Shared),
		s.c(), unsafe.Pointer(unsafe.SliceData(args)), C.size_t(len(args)))
	return failed("launch", code(r))
}

// code turns a driver code into gorgonia.org/cu's error by its number.
func code(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return codeOf(cu.Success, int(r))
}

// codeOf gives n the unexported type that gorgonia.org/cu's codes have.
func codeOf[T ~int](_ T, n int) T { return T(n) }
