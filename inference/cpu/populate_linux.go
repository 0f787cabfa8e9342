package cpu

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// populateItem is the memory that a thread brings in at a time: some huge pages.
const populateItem = 8 << 20

// populate brings the pages of fresh memory in, on all threads: the kernel clears each
// when it is first touched, which takes longer than a step. Memory that there is not
// is an error now, not a killed process later.
func (b *Backend) populate(memory []byte) error {
	t := &populateTask{memory: memory}
	b.run(t, ceil(len(memory), populateItem))
	if err := t.err.Load(); err != nil {
		return *err
	}
	return nil
}

type populateTask struct {
	memory []byte
	err    atomic.Pointer[error]
}

func (t *populateTask) do(_, item int) {
	part := t.memory[item*populateItem : min((item+1)*populateItem, len(t.memory))]
	err := unix.Madvise(part, unix.MADV_POPULATE_WRITE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // before Linux 5.14, or some sandbox
		for at := 0; at < len(part); at += unix.Getpagesize() {
			part[at] = 0
		}
		return
	}
	if err != nil {
		t.err.CompareAndSwap(nil, &err)
	}
}
