package quant

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Encode stores float32 values in type t with ggml's reference rounding.
// len(src) values must take exactly len(dst) bytes, otherwise it fails with
// ErrLength. K-quants are read only and fail with ErrType.
func Encode(t Type, dst []byte, src []float32) error {
	if err := check(t, len(src), len(dst)); err != nil {
		return err
	}
	encodeBlock := blockEncoder(t)
	if encodeBlock == nil {
		return fmt.Errorf("%w: %s cannot be encoded", ErrType, t)
	}
	values, size := t.BlockSize(), t.BlockBytes()
	for len(src) > 0 {
		encodeBlock(dst[:size], src[:values])
		dst, src = dst[size:], src[values:]
	}
	return nil
}

// blockEncoder is the function that encodes one block, nil for K-quants.
func blockEncoder(t Type) func(dst []byte, src []float32) {
	switch t {
	case F32:
		return func(dst []byte, src []float32) {
			binary.LittleEndian.PutUint32(dst, math.Float32bits(src[0]))
		}
	case F16:
		return func(dst []byte, src []float32) { put16(dst, F32ToF16(src[0])) }
	case BF16:
		return func(dst []byte, src []float32) { put16(dst, F32ToBF16(src[0])) }
	case FP8:
		return encodeFP8
	case Q4_0:
		return encodeQ4_0
	case Q4_1:
		return encodeQ4_1
	case Q5_0:
		return encodeQ5_0
	case Q5_1:
		return encodeQ5_1
	case Q8_0:
		return encodeQ8_0
	}
	return nil
}

func put16(b []byte, v uint16) { binary.LittleEndian.PutUint16(b, v) }

func encodeQ4_0(dst []byte, src []float32) {
	d := extreme(src) / -8
	inverse := invert(d)
	put16(dst, F32ToF16(d))
	for j := range 16 {
		low := level(float32(src[j]*inverse)+8.5, 15)
		high := level(float32(src[j+16]*inverse)+8.5, 15)
		dst[2+j] = low | high<<4
	}
}

func encodeQ4_1(dst []byte, src []float32) {
	low, high := bounds(src)
	d := (high - low) / 15
	inverse := invert(d)
	put16(dst, F32ToF16(d))
	put16(dst[2:], F32ToF16(low))
	for j := range 16 {
		q0 := level(float32((src[j]-low)*inverse)+0.5, 15)
		q1 := level(float32((src[j+16]-low)*inverse)+0.5, 15)
		dst[4+j] = q0 | q1<<4
	}
}

func encodeQ5_0(dst []byte, src []float32) {
	d := extreme(src) / -16
	inverse := invert(d)
	put16(dst, F32ToF16(d))
	putFive(dst[2:], func(i int) byte { return level(float32(src[i]*inverse)+16.5, 31) })
}

func encodeQ5_1(dst []byte, src []float32) {
	low, high := bounds(src)
	d := (high - low) / 31
	inverse := invert(d)
	put16(dst, F32ToF16(d))
	put16(dst[2:], F32ToF16(low))
	putFive(dst[4:], func(i int) byte { return level(float32((src[i]-low)*inverse)+0.5, 31) })
}

// putFive writes the fifth bits (4 bytes) and the low nibbles (16 bytes) of a
// block of 32 five-bit levels.
func putFive(dst []byte, at func(i int) byte) {
	var fifths uint32
	for j := range 16 {
		q0, q1 := at(j), at(j+16)
		dst[4+j] = q0&15 | q1<<4
		fifths |= uint32(q0>>4)<<j | uint32(q1>>4)<<(j+16)
	}
	binary.LittleEndian.PutUint32(dst, fifths)
}

func encodeQ8_0(dst []byte, src []float32) {
	d := abs(extreme(src)) / 127
	inverse := invert(d)
	put16(dst, F32ToF16(d))
	for j, x := range src {
		q := math.Round(float64(float32(x * inverse)))
		if !(q >= -128) { // NaN too
			q = -128
		}
		dst[2+j] = byte(int8(min(q, 127)))
	}
}

// extreme is the value farthest from zero, with its sign; the first of equals.
func extreme(src []float32) float32 {
	var x, largest float32
	for _, v := range src {
		if a := abs(v); a > largest {
			largest, x = a, v
		}
	}
	return x
}

func bounds(src []float32) (low, high float32) {
	low, high = src[0], src[0]
	for _, v := range src[1:] {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

func invert(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

// level truncates x to an unsigned level of at most limit; NaN becomes 0.
func level(x, limit float32) byte {
	if !(x > 0) {
		return 0
	}
	return byte(min(x, limit))
}
