package kernel

import "math"

// leastQ8 is a magnitude under which a block is all zeros: its scale, as a half, is
// zero long before, and the inverse of the scale overflows soon after.
const leastQ8 = 0x1p-100

// portableToQ8 is ggml's quantize_row_q8_0_ref: a scale of the largest magnitude over
// 127, and x over the scale rounded with halves away from zero.
func portableToQ8(q []int8, d []uint16, x []float32) {
	for b := range d {
		in, out := x[b*BlockCols:][:BlockCols], q[b*BlockCols:][:BlockCols]
		var bits uint32 // magnitudes compare as integers, NaN above infinity
		for _, v := range in {
			bits = max(bits, math.Float32bits(v)&0x7fffffff)
		}
		amax := math.Float32frombits(bits)
		scale := amax / 127
		d[b] = f16FromF32(scale)
		if !(amax > leastQ8 && amax <= math.MaxFloat32) {
			clear(out)
			continue
		}
		inverse := 1 / scale
		for i, v := range in {
			out[i] = int8(math.Round(float64(v * inverse)))
		}
	}
}

func portableFromQ8(dst []float32, q []int8, d []uint16) {
	for b, h := range d {
		scale := f32FromF16(h)
		out := dst[b*BlockCols:][:BlockCols]
		for i, c := range q[b*BlockCols:][:BlockCols] {
			out[i] = float32(c) * scale
		}
	}
}
