package quant

import "math"

// A block of FP8 is 32 e4m3 codes (sign, four bits of exponent with bias 7, three of
// fraction; no infinity, 0x7f is NaN), then the exponent of a power of two that scales
// them, with bias 127; 255 stands for NaN. That is MXFP8 of the Open Compute Project's
// "Microscaling Formats (MX) Specification" 1.0, whose exponent is taken one larger
// where the block's maximum would not fit: nothing is clipped.
const (
	fp8Codes  = 32
	fp8Bias   = 7
	maxE4M3   = 448
	scaleBias = 127
	scaleNaN  = 255
	topE4M3   = 8 // exponent of maxE4M3
)

// encodeFP8 rounds halves to even. A block with an infinity or NaN gets the scale NaN.
func encodeFP8(dst []byte, src []float32) {
	top := float32(0)
	for _, v := range src {
		if v != v || math.IsInf(float64(v), 0) {
			clear(dst[:fp8Codes])
			dst[fp8Codes] = scaleNaN
			return
		}
		top = max(top, float32(math.Abs(float64(v))))
	}
	e := -scaleBias
	if top > 0 {
		e = max(e, math.Ilogb(float64(top))-topE4M3)
	}
	if math.Ldexp(float64(top), -e) > maxE4M3 {
		e++
	}
	for i, v := range src {
		dst[i] = e4m3(math.Ldexp(float64(v), -e))
	}
	dst[fp8Codes] = byte(e + scaleBias)
}

// e4m3 is the code nearest to v, which lies within ±448.
func e4m3(v float64) byte {
	sign := byte(0)
	if math.Signbit(v) {
		sign, v = 0x80, -v
	}
	// The codes of one exponent are 2^(exponent−3) apart; those of the smallest and the
	// subnormal ones alike.
	e := 1 - fp8Bias
	if v > 0 {
		e = max(e, math.Ilogb(v))
	}
	steps := math.RoundToEven(math.Ldexp(v, 3-e)) // 8 to 16, under 8 for subnormal ones
	return sign | byte((e+fp8Bias-1)*8+int(steps))
}

func decodeFP8(dst []float32, src []byte) {
	for i, c := range src[:fp8Codes] {
		dst[i] = float32(math.Ldexp(fromE4M3(c), int(src[fp8Codes])-scaleBias))
		if src[fp8Codes] == scaleNaN {
			dst[i] = float32(math.NaN())
		}
	}
}

func fromE4M3(c byte) float64 {
	e, fraction := int(c>>3&15), float64(c&7)
	v := math.Ldexp(8+fraction, e-fp8Bias-3)
	switch {
	case c&0x7f == 0x7f:
		v = math.NaN()
	case e == 0:
		v = math.Ldexp(fraction, 1-fp8Bias-3)
	}
	if c&0x80 != 0 {
		v = -v
	}
	return v
}
