//go:build cuda && cgo

package cudrv

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// Ptr is an address in device memory; 0 is none.
type Ptr uintptr

// Alloc reserves device memory. Its contents are undefined.
func Alloc(size int64) (Ptr, error) {
	p, err := cu.MemAlloc(size)
	return Ptr(p), failed(fmt.Sprintf("allocate %d bytes", size), err)
}

// Free gives memory back; freeing 0 does nothing.
func Free(p Ptr) error {
	if p == 0 {
		return nil
	}
	return failed("free", cu.MemFree(cu.DevicePtr(p)))
}

// MemoryInfo is the free and the total memory of the device, in bytes.
func MemoryInfo() (free, total int64, err error) {
	free, total, err = cu.MemInfo()
	return free, total, failed("memory info", err)
}

// Upload copies src to the device and returns when it is there: a copy from pageable
// memory may still be on its way when the driver's call returns, and the streams of
// NewStream do not wait for it.
func Upload(dst Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if err := cu.MemcpyHtoD(cu.DevicePtr(dst), unsafe.Pointer(unsafe.SliceData(src)), int64(len(src))); err != nil {
		return failed("copy to the device", err)
	}
	return failed("copy to the device", cu.NoStream.Synchronize())
}

// Download copies from the device, after everything that was started before on
// blocking streams; synchronise a stream of NewStream first.
func Download(dst []byte, src Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	return failed("copy from the device", cu.MemcpyDtoH(unsafe.Pointer(unsafe.SliceData(dst)), cu.DevicePtr(src), int64(len(dst))))
}

// Pinned is page-locked host memory: what asynchronous copies may use, the C side
// keeping its address after the call.
type Pinned struct{ memory []byte }

// AllocPinned reserves page-locked memory.
func AllocPinned(size int) (*Pinned, error) {
	var p unsafe.Pointer
	if err := code(C.cuMemHostAlloc(&p, C.size_t(size), 0)); err != nil {
		return nil, failed(fmt.Sprintf("allocate %d bytes of pinned memory", size), err)
	}
	return &Pinned{unsafe.Slice((*byte)(p), size)}, nil
}

// Bytes is the memory, until Free.
func (p *Pinned) Bytes() []byte { return p.memory }

// Free gives the memory back.
func (p *Pinned) Free() error {
	if p == nil || p.memory == nil {
		return nil
	}
	err := cu.MemFreeHost(unsafe.Pointer(unsafe.SliceData(p.memory)))
	p.memory = nil
	return failed("free pinned memory", err)
}
