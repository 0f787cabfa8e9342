package kernel

import "unsafe"

// avx2Quant picks the tiles of a quantised type.
func avx2Quant(t Type) quantTiles {
	switch t {
	case Q4_0:
		return quantTiles{one: avx2Q4_0x1, two: avx2Q4_0x2, four: avx2Q4_0x4}
	case Q4_1:
		return quantTiles{one: avx2Q4_1x1, two: avx2Q4_1x2, four: avx2Q4_1x4}
	case Q5_0:
		return quantTiles{one: avx2Q5_0x1, two: avx2Q5_0x2, four: avx2Q5_0x4}
	case Q5_1:
		return quantTiles{one: avx2Q5_1x1, two: avx2Q5_1x2, four: avx2Q5_1x4}
	case Q8_0:
		return quantTiles{one: avx2Q8_0x1, two: avx2Q8_0x2, four: avx2Q8_0x4}
	case Q4_K:
		return quantTiles{one: avx2Q4_Kx1, two: avx2Q4_Kx2, four: avx2Q4_Kx4}
	case Q5_K:
		return quantTiles{one: avx2Q5_Kx1, two: avx2Q5_Kx2, four: avx2Q5_Kx4}
	}
	return quantTiles{one: avx2Q6_Kx1, two: avx2Q6_Kx2, four: avx2Q6_Kx4}
}

func avx2MatMul(dst []float32, stride int, a *Acts, rlo, rhi int, w *Matrix, clo, chi int) {
	quantMatMul(avx2Quant(w.typ), dst, stride, a, rlo, rhi, w, clo, chi)
}

// floatTile is a generated product of 1, 2 or 4 float rows with 1 or 2 strips.
type floatTile func(dst *float32, stride int, x *float32, xstride int, w *byte, cols int)

// avx2Float picks the tiles of an unquantised type: [rows 1, 2, 4][strips 1, 2].
func avx2Float(t Type) [3][2]floatTile {
	switch t {
	case F16:
		return [3][2]floatTile{{avx2F16x1x1, avx2F16x1x2}, {avx2F16x2x1, avx2F16x2x2}, {avx2F16x4x1, avx2F16x4x2}}
	case BF16:
		return [3][2]floatTile{{avx2BF16x1x1, avx2BF16x1x2}, {avx2BF16x2x1, avx2BF16x2x2}, {avx2BF16x4x1, avx2BF16x4x2}}
	}
	return [3][2]floatTile{{avx2F32x1x1, avx2F32x1x2}, {avx2F32x2x1, avx2F32x2x2}, {avx2F32x4x1, avx2F32x4x2}}
}

func avx2MatMulF32(dst []float32, stride int, x []float32, xstride, rlo, rhi int, w *Matrix, clo, chi int) {
	tiles := avx2Float(w.typ)
	whole := clo + (chi-clo)/PackRows*PackRows
	for c := clo; c < whole; {
		strips := min(2, (whole-c)/PackRows)
		for r := rlo; r < rhi; {
			n, i := floatRows(rhi - r)
			tiles[i][strips-1](&dst[r*stride+c], stride, &x[r*xstride], xstride, w.at(c), w.cols)
			r += n
		}
		c += strips * PackRows
	}
	if whole == chi {
		return
	}
	var out [4 * PackRows]float32 // the last, padded strip
	for r := rlo; r < rhi; {
		n, i := floatRows(rhi - r)
		tiles[i][0](&out[0], PackRows, &x[r*xstride], xstride, w.at(whole), w.cols)
		for j := range n {
			copy(dst[(r+j)*stride+whole:(r+j)*stride+chi], out[j*PackRows:])
		}
		r += n
	}
}

func floatRows(left int) (rows, index int) {
	switch {
	case left >= 4:
		return 4, 2
	case left >= 2:
		return 2, 1
	}
	return 1, 0
}

// at is the strip of unquantised weights that begins with row c.
func (m *Matrix) at(c int) *byte {
	if m.typ == F32 {
		return (*byte)(unsafe.Pointer(&m.f32[c/PackRows*m.strip]))
	}
	return &m.data[c/PackRows*m.strip]
}
