package gguf

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"ragd/inference/quant"
)

const (
	magic            = "GGUF"
	alignmentKey     = "general.alignment"
	defaultAlignment = 32
	maxAlignment     = 1 << 20
	maxDims          = 4
	// The least bytes that a metadata entry (name length, one byte of name, type,
	// one byte of value) and a tensor entry (name length, one byte, number of
	// dimensions, one dimension, type, offset) take.
	minEntry  = 8 + 1 + 4 + 1
	minTensor = 8 + 1 + 4 + 8 + 4 + 8
)

// parse reads the head of a file of the given size.
func parse(path string, r io.ReaderAt, size int64) (*File, error) {
	c := newCursor(path, r, size)
	f := &File{Path: path, data: r, size: size, values: map[string]value{}, byName: map[string]int{}}
	c.place = "header"
	f.Version = parseVersion(c)
	tensors, entries := c.u64(), c.u64()
	if c.has(entries, minEntry) {
		f.parseMetadata(c, entries)
	}
	c.place = "tensor table"
	if c.has(tensors, minTensor) {
		f.parseTensors(c, tensors)
	}
	if c.err != nil {
		return nil, c.err
	}
	if err := f.place(c.pos); err != nil {
		return nil, err
	}
	return f, nil
}

func parseVersion(c *cursor) uint32 {
	if m := string(c.bytes(uint64(len(magic)))); c.err == nil && m != magic {
		c.failf("not a GGUF file: starts with %q", m)
	}
	version := c.u32()
	switch {
	case c.err != nil:
	case version == 2 || version == 3:
	case version&0xffff == 0:
		c.failf("big-endian file (version %d); convert it to little-endian", bits.ReverseBytes32(version))
	default:
		c.failf("version %d; versions 2 and 3 can be read", version)
	}
	return version
}

func (f *File) parseMetadata(c *cursor, entries uint64) {
	for i := range entries {
		c.place = fmt.Sprintf("metadata entry %d", i)
		key := c.name("key")
		if c.err != nil {
			return
		}
		c.place = fmt.Sprintf("metadata %q", key)
		if _, twice := f.values[key]; twice {
			c.failf("key appears twice")
			return
		}
		v := parseValue(c)
		if c.err != nil {
			return
		}
		f.values[key] = v
		f.keys = append(f.keys, key)
	}
}

func (f *File) parseTensors(c *cursor, count uint64) {
	f.Tensors = make([]Tensor, 0, count)
	for i := range count {
		c.place = fmt.Sprintf("tensor %d", i)
		name := c.name("tensor")
		if c.err != nil {
			return
		}
		c.place = fmt.Sprintf("tensor %q", name)
		if _, twice := f.byName[name]; twice {
			c.failf("tensor appears twice")
			return
		}
		t := parseTensor(c, name)
		if c.err != nil {
			return
		}
		f.byName[name] = len(f.Tensors)
		f.Tensors = append(f.Tensors, t)
	}
}

// parseTensor reads one entry after its name. Offset is still the distance
// from the start of the data.
func parseTensor(c *cursor, name string) Tensor {
	t := Tensor{Name: name}
	n := c.u32()
	if c.err == nil && (n == 0 || n > maxDims) {
		c.failf("%d dimensions; 1 to %d are possible", n, maxDims)
	}
	if c.err != nil {
		return t
	}
	t.Dims = make([]uint64, n)
	for i := range t.Dims {
		t.Dims[i] = c.u64()
	}
	t.Type = quant.Type(c.u32())
	offset := c.u64()
	if c.err != nil {
		return t
	}
	if offset > math.MaxInt64 {
		c.failf("offset %d is out of range", offset)
		return t
	}
	t.Offset = int64(offset)
	size, err := dataSize(t.Dims, t.Type)
	if err != nil {
		c.err = &FormatError{Path: c.path, Place: c.place, Err: err}
		return t
	}
	t.Size = size
	return t
}

// dataSize is the number of bytes that a tensor takes.
func dataSize(dims []uint64, typ quant.Type) (int64, error) {
	values := uint64(1)
	for _, d := range dims {
		high, low := bits.Mul64(values, d)
		if d == 0 || high != 0 || low > math.MaxInt {
			return 0, fmt.Errorf("impossible dimensions %v", dims)
		}
		values = low
	}
	row, err := typ.RowBytes(int(dims[0]))
	if err != nil {
		return 0, err
	}
	high, size := bits.Mul64(values/dims[0], uint64(row))
	if high != 0 || size > math.MaxInt {
		return 0, fmt.Errorf("impossible dimensions %v for type %s", dims, typ)
	}
	return int64(size), nil
}

// place turns the offsets of the table into offsets in the file and checks
// them; head is the length of everything before the data.
func (f *File) place(head int64) error {
	align, err := f.alignment()
	if err != nil {
		return err
	}
	start := (head + align - 1) / align * align
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if t.Offset%align != 0 {
			return f.fault(t, fmt.Sprintf("offset %d is no multiple of the alignment %d", t.Offset, align))
		}
		if t.Offset > math.MaxInt64-start-t.Size {
			return f.fault(t, fmt.Sprintf("offset %d is out of range", t.Offset))
		}
		t.Offset += start
		if t.Offset+t.Size > f.size {
			return f.short(t, f.size)
		}
	}
	return f.checkOverlap()
}

func (f *File) fault(t *Tensor, reason string) error {
	return &FormatError{Path: f.Path, Place: fmt.Sprintf("tensor %q", t.Name), Reason: reason}
}

func (f *File) alignment() (int64, error) {
	if _, ok := f.values[alignmentKey]; !ok {
		return defaultAlignment, nil
	}
	align, ok := f.Uint(alignmentKey)
	if !ok || align == 0 || align > maxAlignment || align&(align-1) != 0 {
		return 0, &FormatError{
			Path: f.Path, Place: fmt.Sprintf("metadata %q", alignmentKey),
			Reason: fmt.Sprintf("alignment must be a power of two up to %d", maxAlignment),
		}
	}
	return int64(align), nil
}

func (f *File) checkOverlap() error {
	sorted := make([]*Tensor, len(f.Tensors))
	for i := range f.Tensors {
		sorted[i] = &f.Tensors[i]
	}
	slices.SortFunc(sorted, func(a, b *Tensor) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := 1; i < len(sorted); i++ {
		before, t := sorted[i-1], sorted[i]
		if before.Offset+before.Size > t.Offset {
			return f.fault(t, fmt.Sprintf("data overlaps that of tensor %q", before.Name))
		}
	}
	return nil
}
