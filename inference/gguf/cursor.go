package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// cursor reads the head of a file in order and knows how much is left. After
// its first error it stays there and returns zeros; the parser looks at err
// once for each entry.
type cursor struct {
	path  string
	place string
	in    *bufio.Reader
	pos   int64
	size  int64
	err   error
}

func newCursor(path string, r io.ReaderAt, size int64) *cursor {
	const buffer = 256 << 10
	in := bufio.NewReaderSize(io.NewSectionReader(r, 0, size), buffer)
	return &cursor{path: path, in: in, size: size}
}

// failf records the first fault.
func (c *cursor) failf(format string, args ...any) {
	if c.err == nil {
		c.err = &FormatError{Path: c.path, Place: c.place, Reason: fmt.Sprintf(format, args...)}
	}
}

// has checks that count items of at least size bytes can follow.
func (c *cursor) has(count uint64, size int64) bool {
	if c.err != nil {
		return false
	}
	left := uint64(c.size-c.pos) / uint64(size)
	if count <= left {
		return true
	}
	needs := int64(math.MaxInt64)
	if count <= uint64(math.MaxInt64-c.pos)/uint64(size) {
		needs = c.pos + int64(count)*size
	}
	c.err = &FormatError{Path: c.path, Place: c.place, Needs: needs, Has: c.size}
	return false
}

// bytes reads n bytes into a new slice, nil after an error.
func (c *cursor) bytes(n uint64) []byte {
	if !c.has(n, 1) {
		return nil
	}
	b := make([]byte, n)
	c.fill(b)
	return b
}

func (c *cursor) fill(b []byte) {
	n, err := io.ReadFull(c.in, b)
	c.pos += int64(n)
	if err == nil {
		return
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		// The file has become shorter since its size was asked for.
		needs := c.pos - int64(n) + int64(len(b))
		c.err = &FormatError{Path: c.path, Place: c.place, Needs: needs, Has: c.pos}
		return
	}
	c.err = fmt.Errorf("%s: %s: %w", c.path, c.place, err)
}

func (c *cursor) u32() uint32 {
	var b [4]byte
	if c.has(4, 1) {
		c.fill(b[:])
	}
	return binary.LittleEndian.Uint32(b[:])
}

func (c *cursor) u64() uint64 {
	var b [8]byte
	if c.has(8, 1) {
		c.fill(b[:])
	}
	return binary.LittleEndian.Uint64(b[:])
}

// text reads a string: length (u64), bytes.
func (c *cursor) text() string { return string(c.bytes(c.u64())) }

// longestName is the most bytes that the name of a key or a tensor has in the format.
const longestName = 65535

// name reads the name of a key or a tensor, which cannot be empty.
func (c *cursor) name(what string) string {
	n := c.u64()
	switch {
	case c.err != nil:
		return ""
	case n == 0:
		c.failf("empty name of a %s", what)
		return ""
	case n > longestName && c.has(n, 1):
		c.failf("the name of a %s has %d bytes, the most is %d", what, n, longestName)
		return ""
	}
	return string(c.bytes(n))
}
