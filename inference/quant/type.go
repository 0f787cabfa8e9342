// Package quant holds the number formats that model weights are stored in:
// plain floats and ggml's block formats. Decode and Encode are the portable
// reference that every faster kernel is checked against.
//
// All formats are little-endian. A block format stores BlockSize consecutive
// values of one row in BlockBytes bytes; a row is a whole number of blocks.
// The layouts are those of ggml's ggml-common.h (MIT), block_q4_0 and so on.
package quant

import (
	"errors"
	"fmt"
	"math"
)

// Type is a tensor type with ggml's number, as it stands in GGUF files.
type Type uint32

// The types that ragd reads.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q4_1 Type = 3
	Q5_0 Type = 6
	Q5_1 Type = 7
	Q8_0 Type = 8
	Q4_K Type = 12
	Q5_K Type = 13
	Q6_K Type = 14
	BF16 Type = 30
	// FP8 is for KV caches only: ggml has no such type, so it is a number of ragd's own.
	FP8 Type = 1 << 16
)

var (
	// ErrType says that a type is not one of those above, or that an operation
	// does not exist for it (K-quants are not encoded).
	ErrType = errors.New("unsupported tensor type")
	// ErrLength says that a slice does not hold a whole number of blocks or
	// that source and destination do not match.
	ErrLength = errors.New("length does not fit the tensor type")
)

type layout struct {
	name         string
	values, size int
}

func (t Type) layout() (layout, bool) {
	switch t {
	case F32:
		return layout{"F32", 1, 4}, true
	case F16:
		return layout{"F16", 1, 2}, true
	case BF16:
		return layout{"BF16", 1, 2}, true
	case Q4_0:
		return layout{"Q4_0", 32, 18}, true
	case Q4_1:
		return layout{"Q4_1", 32, 20}, true
	case Q5_0:
		return layout{"Q5_0", 32, 22}, true
	case Q5_1:
		return layout{"Q5_1", 32, 24}, true
	case Q8_0:
		return layout{"Q8_0", 32, 34}, true
	case Q4_K:
		return layout{"Q4_K", 256, 144}, true
	case Q5_K:
		return layout{"Q5_K", 256, 176}, true
	case Q6_K:
		return layout{"Q6_K", 256, 210}, true
	case FP8:
		return layout{"FP8", fp8Codes, fp8Codes + 1}, true
	}
	return layout{}, false
}

// String is ggml's name of the type, or "type(N)" for one that is not known.
func (t Type) String() string {
	if l, ok := t.layout(); ok {
		return l.name
	}
	return fmt.Sprintf("type(%d)", uint32(t))
}

// Valid reports whether the type is one that this package decodes.
func (t Type) Valid() bool {
	_, ok := t.layout()
	return ok
}

// BlockSize is the number of values in a block, 0 for an unknown type.
func (t Type) BlockSize() int {
	l, _ := t.layout()
	return l.values
}

// BlockBytes is the number of bytes a block takes, 0 for an unknown type.
func (t Type) BlockBytes() int {
	l, _ := t.layout()
	return l.size
}

// ValueBytes is the number of bytes a value takes, its share of the scales included: 2
// for F16, 34/32 for Q8_0, 33/32 for FP8; 0 for an unknown type.
func (t Type) ValueBytes() float64 {
	l, ok := t.layout()
	if !ok {
		return 0
	}
	return float64(l.size) / float64(l.values)
}

// RowBytes is the number of bytes that a row of cols values takes. It fails
// with ErrType for an unknown type and with ErrLength when cols is negative,
// no multiple of the block size or too large to address.
func (t Type) RowBytes(cols int) (int, error) {
	l, ok := t.layout()
	if !ok {
		return 0, fmt.Errorf("%w: %s", ErrType, t)
	}
	if cols < 0 || cols%l.values != 0 {
		return 0, fmt.Errorf("%w: a %s row of %d values is no multiple of %d", ErrLength, t, cols, l.values)
	}
	blocks := cols / l.values
	if blocks > math.MaxInt/l.size {
		return 0, fmt.Errorf("%w: a %s row of %d values is too long", ErrLength, t, cols)
	}
	return blocks * l.size, nil
}

// check tells whether values values of type t take exactly size bytes.
func check(t Type, values, size int) error {
	want, err := t.RowBytes(values)
	if err != nil {
		return err
	}
	if size != want {
		return fmt.Errorf("%w: %d values of %s take %d bytes, not %d", ErrLength, values, t, want, size)
	}
	return nil
}
