package quant

import "math"

// F16ToF32 widens an IEEE 754 binary16 value; every value, subnormals,
// infinities and NaN payloads included, is represented exactly.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h>>10) & 0x1f
	man := uint32(h) & 0x3ff
	switch exp {
	case 0:
		// A subnormal is man × 2⁻²⁴, which float32 holds as a normal number.
		f := float32(man) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(f))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// F32ToF16 narrows to IEEE 754 binary16, rounding to nearest even. Values
// beyond the largest half become infinities, NaN stays NaN (quiet).
func F32ToF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	abs := bits & 0x7fffffff
	switch {
	case abs > 0x7f800000:
		return sign | 0x7e00 | uint16(abs>>13)&0x3ff
	case abs >= 0x477ff000: // 65520: half way past the largest finite half
		return sign | 0x7c00
	case abs < 0x38800000: // below 2⁻¹⁴: subnormal or zero
		// Adding 0.5 puts the 24 kept bits at the bottom of the significand, and
		// the addition itself rounds to nearest even.
		sum := math.Float32frombits(abs) + 0.5
		return sign | uint16(math.Float32bits(sum)-0x3f000000)
	}
	// Rebias the exponent, then round the 13 dropped bits to nearest even. A
	// carry runs into the exponent, as it should.
	abs -= 112 << 23
	abs += 0xfff + (abs>>13)&1
	return sign | uint16(abs>>13)
}

// BF16ToF32 widens a bfloat16 value, the upper half of a float32.
func BF16ToF32(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// F32ToBF16 narrows to bfloat16, rounding to nearest even; NaN stays NaN (quiet).
func F32ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + (bits>>16)&1) >> 16)
}
