package cpu

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// All pages of a cache are there when it is: none is left for the first steps.
func TestPopulate(t *testing.T) {
	b := newBackend(t, Config{Threads: 2})
	for _, size := range []int{1, 5000, populateItem, 2*populateItem + 4097} {
		memory, err := reserve(size)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.populate(memory); err != nil {
			t.Fatal(err)
		}
		for i, page := range resident(t, memory) {
			if page&1 == 0 {
				t.Fatalf("%d bytes: page %d is not there", size, i)
			}
		}
		if err := release(memory); err != nil {
			t.Fatal(err)
		}
	}
}

// Memory that cannot be had, here because it lies behind the end of a file, is an error.
func TestPopulateFails(t *testing.T) {
	b := newBackend(t, Config{Threads: 2})
	f, err := os.Create(filepath.Join(t.TempDir(), "empty"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	memory, err := unix.Mmap(int(f.Fd()), 0, 2*populateItem, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := release(memory); err != nil {
			t.Error(err)
		}
	}()
	if err := b.populate(memory); !errors.Is(err, unix.EFAULT) {
		t.Errorf("pages behind the end of a file: %v", err)
	}
}

// resident has a byte for each page, whose lowest bit says whether it is in memory.
func resident(t *testing.T, memory []byte) []byte {
	t.Helper()
	page := unix.Getpagesize()
	pages := make([]byte, ceil(len(memory), page))
	_, _, err := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&memory[0])), uintptr(len(memory)), uintptr(unsafe.Pointer(&pages[0])))
	if err != 0 {
		t.Fatal(err)
	}
	return pages
}
