package kernel

import (
	"sync"
	"unsafe"
)

// Weights are read once a token from end to end, so that address translation,
// not memory, sets the pace when pages are small: from 2 MiB pages a product of
// one row reads 1.6 times as fast. A model's matrices are mostly smaller than
// such a page, hence they are cut from large pieces of the Go heap; the garbage
// collector frees a piece when no matrix in it is left.
const (
	hugePage  = 2 << 20
	pieceSize = 32 << 20
	cacheLine = 64
)

// pieces is where New gets its memory, for the whole process as the heap is.
var pieces struct {
	sync.Mutex
	free []byte // what is left of the newest piece
}

// allocate returns n zeroed bytes that begin a cache line.
func allocate(n int) []byte {
	pieces.Lock()
	defer pieces.Unlock()
	size := (n + cacheLine - 1) / cacheLine * cacheLine
	if size > len(pieces.free) {
		if size >= pieceSize/2 {
			return newPiece(size)[:n:n]
		}
		pieces.free = newPiece(pieceSize)
	}
	out := pieces.free[:n:n]
	pieces.free = pieces.free[size:]
	return out
}

// newPiece is memory for huge pages, if the system has them. The part before
// the first page boundary is never touched and so takes no memory.
func newPiece(n int) []byte {
	n = (n + hugePage - 1) / hugePage * hugePage
	raw := make([]byte, n+hugePage)
	off := hugePage - int(uintptr(unsafe.Pointer(&raw[0]))%hugePage)
	piece := raw[off : off+n : off+n]
	adviseHuge(piece)
	return piece
}
