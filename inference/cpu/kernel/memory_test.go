package kernel

import (
	"testing"
	"unsafe"
)

// TestAllocate: pieces are zero, aligned, apart from each other and cannot grow
// into their neighbour.
func TestAllocate(t *testing.T) {
	var all [][]byte
	for _, n := range []int{1, 63, 64, 65, 4096, hugePage + 1, pieceSize - 1, pieceSize, pieceSize + 1, 100} {
		b := allocate(n)
		if len(b) != n || cap(b) != n || uintptr(unsafe.Pointer(&b[0]))%cacheLine != 0 {
			t.Fatalf("%d bytes: length %d, capacity %d, at %p", n, len(b), cap(b), &b[0])
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatalf("%d bytes: byte %d is %d", n, i, b[i])
			}
			b[i] = byte(len(all) + 1)
		}
		all = append(all, b)
	}
	for i, b := range all {
		for j := range b {
			if b[j] != byte(i+1) {
				t.Fatalf("allocation %d was written by another one", i)
			}
		}
	}
}
