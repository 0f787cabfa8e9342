package quant

import (
	"encoding/binary"
	"math"
)

// Decode turns stored values into float32. len(dst) values must take exactly
// len(src) bytes in type t; otherwise it fails with ErrLength or ErrType and
// leaves dst alone.
func Decode(t Type, dst []float32, src []byte) error {
	if err := check(t, len(dst), len(src)); err != nil {
		return err
	}
	decodeBlock := blockDecoder(t)
	values, size := t.BlockSize(), t.BlockBytes()
	for len(dst) > 0 {
		decodeBlock(dst[:values], src[:size])
		dst, src = dst[values:], src[size:]
	}
	return nil
}

// blockDecoder is the function that decodes one block; its slices have
// exactly the block's lengths.
func blockDecoder(t Type) func(dst []float32, src []byte) {
	switch t {
	case F16:
		return func(dst []float32, src []byte) { dst[0] = F16ToF32(u16(src)) }
	case BF16:
		return func(dst []float32, src []byte) { dst[0] = BF16ToF32(u16(src)) }
	case FP8:
		return decodeFP8
	case Q4_0:
		return decodeQ4_0
	case Q4_1:
		return decodeQ4_1
	case Q5_0:
		return decodeQ5_0
	case Q5_1:
		return decodeQ5_1
	case Q8_0:
		return decodeQ8_0
	case Q4_K:
		return decodeQ4_K
	case Q5_K:
		return decodeQ5_K
	case Q6_K:
		return decodeQ6_K
	default: // F32; Decode has refused all others
		return func(dst []float32, src []byte) {
			dst[0] = math.Float32frombits(binary.LittleEndian.Uint32(src))
		}
	}
}

func u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }

func half(b []byte) float32 { return F16ToF32(u16(b)) }

// decodeQ4_0: d (f16), 16 bytes; byte j holds value j low and j+16 high;
// x = d·(q−8).
func decodeQ4_0(dst []float32, src []byte) {
	d, qs := half(src), src[2:18]
	for j, q := range qs {
		dst[j] = d * float32(int(q&15)-8)
		dst[j+16] = d * float32(int(q>>4)-8)
	}
}

// decodeQ4_1: d, m (f16), 16 bytes as in Q4_0; x = d·q + m.
func decodeQ4_1(dst []float32, src []byte) {
	d, m, qs := half(src), half(src[2:]), src[4:20]
	for j, q := range qs {
		dst[j] = float32(d*float32(q&15)) + m
		dst[j+16] = float32(d*float32(q>>4)) + m
	}
}

// decodeQ5_0: d (f16), 4 bytes whose bit i is the fifth bit of value i, 16
// bytes as in Q4_0; x = d·(q−16).
func decodeQ5_0(dst []float32, src []byte) {
	d, high, qs := half(src), binary.LittleEndian.Uint32(src[2:]), src[6:22]
	for j, q := range qs {
		dst[j] = d * float32(int(fifth(q&15, high, j))-16)
		dst[j+16] = d * float32(int(fifth(q>>4, high, j+16))-16)
	}
}

// decodeQ5_1: d, m (f16), fifth bits and low bits as in Q5_0; x = d·q + m.
func decodeQ5_1(dst []float32, src []byte) {
	d, m := half(src), half(src[2:])
	high, qs := binary.LittleEndian.Uint32(src[4:]), src[8:24]
	for j, q := range qs {
		dst[j] = float32(d*float32(fifth(q&15, high, j))) + m
		dst[j+16] = float32(d*float32(fifth(q>>4, high, j+16))) + m
	}
}

func fifth(low byte, high uint32, i int) byte { return low | byte(high>>i&1)<<4 }

// decodeQ8_0: d (f16), 32 int8; x = d·q.
func decodeQ8_0(dst []float32, src []byte) {
	d := half(src)
	for j, q := range src[2:34] {
		dst[j] = d * float32(int8(q))
	}
}
