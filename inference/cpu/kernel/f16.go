package kernel

import "math"

// f32FromF16 widens an IEEE 754 binary16 value; the result is exact.
func f32FromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	frac := uint32(h & 0x3ff)
	switch {
	case exp == 0x1f && frac != 0: // NaN, made quiet as the hardware does
		return math.Float32frombits(sign | 0x7fc00000 | frac<<13)
	case exp == 0x1f:
		return math.Float32frombits(sign | 0x7f800000)
	case exp == 0: // zero or subnormal: frac · 2⁻²⁴
		f := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(f))
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}

// f16FromF32 narrows to binary16, rounding to nearest even, overflowing to infinity.
func f16FromF32(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	abs := b & 0x7fffffff
	switch {
	case abs > 0x7f800000: // NaN keeps its upper payload and turns quiet
		return sign | 0x7e00 | uint16(abs>>13)&0x3ff
	case abs >= 0x477ff000: // 65520 and above round to infinity
		return sign | 0x7c00
	case abs < 0x38800000: // below 2⁻¹⁴: subnormal; adding 0.5 rounds at 2⁻²⁴
		r := math.Float32frombits(abs) + 0.5
		return sign | uint16(math.Float32bits(r)-0x3f000000)
	}
	abs += 0xfff + (abs>>13)&1
	return sign | uint16((abs-(127-15)<<23)>>13)
}

// f32FromBF16 widens a bfloat16 value; the result is exact.
func f32FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func portableToF16(dst []uint16, src []float32) {
	for i, v := range src {
		dst[i] = f16FromF32(v)
	}
}

func portableFromF16(dst []float32, src []uint16) {
	for i, v := range src {
		dst[i] = f32FromF16(v)
	}
}
