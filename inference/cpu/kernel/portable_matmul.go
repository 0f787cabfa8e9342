package kernel

import "math"

// minAmax is the smallest largest-magnitude of a block that is not flushed to
// zero: below it 127/amax overflows.
const minAmax = 127 / math.MaxFloat32

// portableQuantize follows Q8_0 for activations: D = amax/127, Q = x·(127/amax)
// rounded to nearest even. A block with an infinity or NaN gets D infinite or
// NaN and Q = 0, so that its S, and every product with it, shows NaN.
func portableQuantize(a *Acts, row int, x []float32) {
	blocks := a.Cols / BlockCols
	for b := range blocks {
		in := x[b*BlockCols : (b+1)*BlockCols]
		out := a.Q[row*a.Cols+b*BlockCols:][:BlockCols]
		var bits uint32 // magnitudes compare as integers, NaN above infinity
		for _, v := range in {
			bits = max(bits, math.Float32bits(v)&0x7fffffff)
		}
		amax := math.Float32frombits(bits)
		inv := float32(0)
		if amax > minAmax && amax <= math.MaxFloat32 {
			inv = 127 / amax
		}
		sum := int32(0)
		for i, v := range in {
			q := int8(0)
			if inv != 0 {
				q = int8(max(-127, min(127, math.RoundToEven(float64(v*inv)))))
			}
			out[i] = q
			sum += int32(q)
		}
		d := amax / 127
		a.D[row*blocks+b] = d
		a.S[row*blocks+b] = d * float32(sum)
		a.O[row*blocks+b] = -128 * sum
	}
}

// portableMatMul adds, block after block in column order, first
// (Σ s·q·Q)·(d·D) and then min·S to each element. The integer sum is exact and,
// being below 2²⁴, exact in float32 too; d·D is rounded once.
func portableMatMul(dst []float32, stride int, a *Acts, rlo, rhi int, w *Matrix, clo, chi int) {
	var b laneBlock
	lay, blocks := &w.lay, w.cols/BlockCols
	for c := clo; c < chi; c++ {
		strip := w.data[c/PackRows*w.strip:]
		for r := rlo; r < rhi; r++ {
			dst[r*stride+c] = 0
		}
		for blk := range blocks {
			lay.lane(&b, strip[blk/lay.per*lay.group():], blk%lay.per, c%PackRows)
			for r := rlo; r < rhi; r++ {
				i := r*blocks + blk
				sum := dotCodes(&b, a.Q[i*BlockCols:])
				acc := dst[r*stride+c] + float32(sum)*(b.d*a.D[i])
				if b.min != 0 {
					acc += b.min * a.S[i]
				}
				dst[r*stride+c] = acc
			}
		}
	}
}

func dotCodes(b *laneBlock, q []int8) int32 {
	q = q[:BlockCols]
	var lo, hi int32
	for i := range BlockCols / 2 {
		lo += int32(b.q[i]) * int32(q[i])
		hi += int32(b.q[i+16]) * int32(q[i+16])
	}
	return lo*b.s[0] + hi*b.s[1]
}

// portableMatMulF32 adds the products in column order.
func portableMatMulF32(dst []float32, stride int, x []float32, xstride, rlo, rhi int, w *Matrix, clo, chi int) {
	row := make([]float32, w.cols)
	for c := clo; c < chi; c++ {
		w.Row(row, c)
		for r := rlo; r < rhi; r++ {
			dst[r*stride+c] = portableDot(row, x[r*xstride:])
		}
	}
}
