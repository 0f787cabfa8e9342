package kernel

import "golang.org/x/sys/unix"

// adviseHuge asks for huge pages; without them all works as well, only slower.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
