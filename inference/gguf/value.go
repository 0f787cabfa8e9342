package gguf

import (
	"encoding/binary"
	"math"
)

var order = binary.LittleEndian

// kind is the type of a metadata value, with the format's numbers.
type kind uint32

const (
	kindU8 kind = iota
	kindI8
	kindU16
	kindI16
	kindU32
	kindI32
	kindF32
	kindBool
	kindString
	kindArray
	kindU64
	kindI64
	kindF64
)

// width is the number of bytes a value takes, 0 for strings and arrays, and
// -1 for a type that the format does not have.
func (k kind) width() int64 {
	switch k {
	case kindU8, kindI8, kindBool:
		return 1
	case kindU16, kindI16:
		return 2
	case kindU32, kindI32, kindF32:
		return 4
	case kindU64, kindI64, kindF64:
		return 8
	case kindString, kindArray:
		return 0
	}
	return -1
}

// value is one metadata value. Numbers are kept as they stand in the file, so
// that a value takes no more memory than there.
type value struct {
	kind kind // of the value, or of the elements of an array
	list bool
	raw  []byte   // numbers and booleans
	text []string // strings
}

func parseValue(c *cursor) value {
	k := kind(c.u32())
	if c.err != nil {
		return value{}
	}
	if k == kindArray {
		return parseArray(c)
	}
	v := value{kind: k}
	switch w := k.width(); {
	case w > 0:
		v.raw = c.bytes(uint64(w))
	case k == kindString:
		v.text = []string{c.text()}
	default:
		c.failf("unknown value type %d", k)
	}
	return v
}

func parseArray(c *cursor) value {
	v := value{kind: kind(c.u32()), list: true}
	count := c.u64()
	if c.err != nil {
		return v
	}
	switch w := v.kind.width(); {
	case w > 0:
		if c.has(count, w) {
			v.raw = c.bytes(count * uint64(w))
		}
	case v.kind == kindString:
		const least = 8 // the length of a string
		if c.has(count, least) {
			v.text = parseStrings(c, count)
		}
	case v.kind == kindArray:
		c.failf("arrays of arrays are not supported")
	default:
		c.failf("unknown element type %d", v.kind)
	}
	return v
}

func parseStrings(c *cursor, count uint64) []string {
	text := make([]string, count)
	for i := range text {
		text[i] = c.text()
		if c.err != nil {
			return nil
		}
	}
	return text
}

// len is the number of numbers in the value.
func (v value) len() int {
	if w := v.kind.width(); w > 0 {
		return len(v.raw) / int(w)
	}
	return 0
}

// integer is number i as an int64; ok is false when it is none or too large.
func (v value) integer(i int) (n int64, ok bool) {
	switch v.kind {
	case kindU8:
		return int64(v.raw[i]), true
	case kindI8:
		return int64(int8(v.raw[i])), true
	case kindU16:
		return int64(order.Uint16(v.raw[2*i:])), true
	case kindI16:
		return int64(int16(order.Uint16(v.raw[2*i:]))), true
	case kindU32:
		return int64(order.Uint32(v.raw[4*i:])), true
	case kindI32:
		return int64(int32(order.Uint32(v.raw[4*i:]))), true
	case kindU64:
		u := order.Uint64(v.raw[8*i:])
		return int64(u), u <= math.MaxInt64
	case kindI64:
		return int64(order.Uint64(v.raw[8*i:])), true
	case kindBool:
		if v.raw[i] != 0 {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// float is number i when it is a floating-point number.
func (v value) float(i int) (x float64, ok bool) {
	switch v.kind {
	case kindF32:
		return float64(math.Float32frombits(order.Uint32(v.raw[4*i:]))), true
	case kindF64:
		return math.Float64frombits(order.Uint64(v.raw[8*i:])), true
	}
	return 0, false
}
