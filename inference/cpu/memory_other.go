//go:build !linux

package cpu

// reserve takes zeroed memory from the heap.
func reserve(size int) ([]byte, error) { return make([]byte, size), nil }

func release([]byte) error { return nil }

// populate has nothing to do: the heap's memory is in use already, or will be.
func (b *Backend) populate([]byte) error { return nil }
