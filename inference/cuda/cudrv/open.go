//go:build cuda && cgo

package cudrv

/*
#cgo LDFLAGS: -L${SRCDIR}/lib -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"gorgonia.org/cu"
)

// DefaultLibrary is the driver library's name, found as the system finds libraries.
const DefaultLibrary = "libcuda.so.1"

// opened is the process's one driver library: the handles that gorgonia.org/cu
// keeps belong to it.
var opened struct {
	sync.Mutex
	path string
}

// Open loads the driver library at path and initialises it; the empty path means
// DefaultLibrary. A process has one driver: opening the same path again does
// nothing, opening another fails. Failures match ErrUnavailable and say why.
func Open(path string) error {
	if path == "" {
		path = DefaultLibrary
	}
	opened.Lock()
	defer opened.Unlock()
	switch opened.path {
	case path:
		return nil
	case "":
	default:
		return fmt.Errorf("%w: %s is open already, so %s cannot be", ErrUnavailable, opened.path, path)
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var reason *C.char
	if r := C.ragd_driver_open(name, &reason); r != C.CUDA_SUCCESS {
		return fmt.Errorf("%w: %s (%d)", ErrUnavailable, C.GoString(reason), int(r))
	}
	opened.path = path
	return nil
}

// Info describes a device.
type Info struct {
	Ordinal      int
	Name         string
	Memory       int64 // bytes in all
	Major, Minor int   // compute capability
}

// String is one line for a person.
func (i Info) String() string {
	return fmt.Sprintf("cuda:%d %s, %.1f GiB, compute capability %d.%d", i.Ordinal, i.Name, float64(i.Memory)/(1<<30), i.Major, i.Minor)
}

// Devices lists the devices of the open driver.
func Devices() ([]Info, error) {
	n, err := cu.NumDevices()
	if err != nil {
		return nil, failed("count devices", err)
	}
	list := make([]Info, n)
	for i := range list {
		if list[i], err = describe(i); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func describe(ordinal int) (Info, error) {
	d, err := cu.GetDevice(ordinal)
	if err != nil {
		return Info{}, failed(fmt.Sprintf("find device %d", ordinal), err)
	}
	info := Info{Ordinal: ordinal}
	if info.Name, err = d.Name(); err != nil {
		return info, failed("name of the device", err)
	}
	if info.Memory, err = d.TotalMem(); err != nil {
		return info, failed("memory of the device", err)
	}
	if info.Major, err = d.Attribute(cu.ComputeCapabilityMajor); err != nil {
		return info, failed("compute capability", err)
	}
	info.Minor, err = d.Attribute(cu.ComputeCapabilityMinor)
	return info, failed("compute capability", err)
}

// Version is the newest CUDA version the driver supports: 12010 for 12.1.
func Version() int { return cu.Version() }
