//go:build cuda && cgo

package cudrv

/*
#include "extra.h"
*/
import "C"

import "unsafe"

// Rows are pieces of device memory at equal distances, and a run of pinned memory that
// holds them one after the other.
type Rows struct {
	Host         *Pinned
	Offset       int // in Host
	Device       Ptr // the first piece
	Count, Bytes int // of pieces, of each
	Pitch        int // from piece to piece
}

func (r *Rows) host() unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(r.Host.memory[r.Offset : r.Offset+r.Count*r.Bytes]))
}

// UploadRows queues a copy to the device; the host's memory must stay as it is until it
// is done.
func (s Stream) UploadRows(r Rows) error {
	return failed("copy to the device", code(C.ragd_copy_rows(C.CUdeviceptr(r.Device), C.size_t(r.Pitch), r.host(), C.size_t(r.Bytes), C.size_t(r.Count), 1, s.c())))
}

// DownloadRows queues a copy from the device.
func (s Stream) DownloadRows(r Rows) error {
	return failed("copy from the device", code(C.ragd_copy_rows(C.CUdeviceptr(r.Device), C.size_t(r.Pitch), r.host(), C.size_t(r.Bytes), C.size_t(r.Count), 0, s.c())))
}
