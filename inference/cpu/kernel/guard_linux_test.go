package kernel

import (
	"syscall"
	"testing"
	"unsafe"
)

// guarded is a copy of src whose last byte is followed by a page that cannot be
// touched, so that a kernel reading or writing past the end faults.
func guarded[T any](t testing.TB, src []T) []T { return place(t, src, true) }

// guardedBefore is a copy of src that begins right after such a page.
func guardedBefore[T any](t testing.TB, src []T) []T { return place(t, src, false) }

func place[T any](t testing.TB, src []T, atEnd bool) []T {
	t.Helper()
	if len(src) == 0 {
		return src
	}
	page := syscall.Getpagesize()
	size := len(src) * int(unsafe.Sizeof(src[0]))
	body := (size + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, body+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(mem) })
	for _, p := range [][]byte{mem[:page], mem[page+body:]} {
		if err := syscall.Mprotect(p, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	off := page
	if atEnd {
		off = page + body - size
	}
	out := unsafe.Slice((*T)(unsafe.Pointer(&mem[off])), len(src))
	copy(out, src)
	return out
}
