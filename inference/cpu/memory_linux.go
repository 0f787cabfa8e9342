package cpu

import "golang.org/x/sys/unix"

// reserve maps zeroed anonymous memory outside the garbage-collected heap and
// asks for huge pages, without which a long context misses the TLB at every block.
func reserve(size int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	// Advice only: a kernel without huge pages refuses it and loses nothing.
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE)
	return m, nil
}

func release(m []byte) error {
	if m == nil {
		return nil
	}
	return unix.Munmap(m)
}
