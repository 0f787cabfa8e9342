package kernel

import "unsafe"

// quantTile is a generated product of 1, 2 or 4 activation rows with strips.
type quantTile func(dst *float32, stride int, q *int8, cols int, d, s *float32, w *byte, groups, strips int)

// quantTiles are the tiles for 1, 2 and 4 rows.
type quantTiles [3]quantTile

// avx2Quant picks the tiles of a quantised type.
func avx2Quant(t Type) *quantTiles {
	switch t {
	case Q4_0:
		return &quantTiles{avx2Q4_0x1, avx2Q4_0x2, avx2Q4_0x4}
	case Q4_1:
		return &quantTiles{avx2Q4_1x1, avx2Q4_1x2, avx2Q4_1x4}
	case Q5_0:
		return &quantTiles{avx2Q5_0x1, avx2Q5_0x2, avx2Q5_0x4}
	case Q5_1:
		return &quantTiles{avx2Q5_1x1, avx2Q5_1x2, avx2Q5_1x4}
	case Q8_0:
		return &quantTiles{avx2Q8_0x1, avx2Q8_0x2, avx2Q8_0x4}
	case Q4_K:
		return &quantTiles{avx2Q4_Kx1, avx2Q4_Kx2, avx2Q4_Kx4}
	case Q5_K:
		return &quantTiles{avx2Q5_Kx1, avx2Q5_Kx2, avx2Q5_Kx4}
	}
	return &quantTiles{avx2Q6_Kx1, avx2Q6_Kx2, avx2Q6_Kx4}
}

// panelBytes of weights are multiplied with all rows before the next panel, so
// that they are read from the second-level cache; it also bounds one assembly
// call, which cannot be preempted, to some tens of microseconds.
const panelBytes = 128 << 10

func avx2MatMul(dst []float32, stride int, a *Acts, rlo, rhi int, w *Matrix, clo, chi int) {
	quantMatMul(avx2Quant(w.typ), dst, stride, a, rlo, rhi, w, clo, chi)
}

// quantMatMul walks panels of strips, and in a panel tiles of rows. Every tile
// reduces an element in the same order.
func quantMatMul(tiles *quantTiles, dst []float32, stride int, a *Acts, rlo, rhi int, w *Matrix, clo, chi int) {
	whole := clo + (chi-clo)/PackRows*PackRows
	panel := max(1, panelBytes/w.strip) * PackRows
	for c := clo; c < whole; c += panel {
		strips := (min(panel, whole-c)) / PackRows
		for r := rlo; r < rhi; {
			n, tile := tiles.pick(rhi - r)
			tile.run(&dst[r*stride+c], stride, a, r, w, c, strips)
			r += n
		}
	}
	if whole < chi {
		partialStrip(tiles, dst, stride, a, rlo, rhi, w, whole, chi)
	}
}

// partialStrip computes the last, padded strip aside and copies what is real.
func partialStrip(tiles *quantTiles, dst []float32, stride int, a *Acts, rlo, rhi int, w *Matrix, clo, chi int) {
	var out [4 * PackRows]float32
	for r := rlo; r < rhi; {
		n, tile := tiles.pick(rhi - r)
		tile.run(&out[0], PackRows, a, r, w, clo, 1)
		for i := range n {
			copy(dst[(r+i)*stride+clo:(r+i)*stride+chi], out[i*PackRows:])
		}
		r += n
	}
}

// pick takes the widest tile for the rows that are left.
func (t *quantTiles) pick(rows int) (int, quantTile) {
	switch {
	case rows >= 4:
		return 4, t[2]
	case rows >= 2:
		return 2, t[1]
	}
	return 1, t[0]
}

func (f quantTile) run(dst *float32, stride int, a *Acts, r int, w *Matrix, c, strips int) {
	blocks := a.Cols / BlockCols
	f(dst, stride, &a.Q[r*a.Cols], a.Cols, &a.D[r*blocks], &a.S[r*blocks],
		&w.data[c/PackRows*w.strip], w.cols/w.lay.cols(), strips)
}

// floatTile is a generated product of 1, 2 or 4 float rows with 1 or 2 strips.
type floatTile func(dst *float32, stride int, x *float32, xstride int, w *byte, cols int)

// avx2Float picks the tiles of an unquantised type: [rows 1, 2, 4][strips 1, 2].
func avx2Float(t Type) *[3][2]floatTile {
	switch t {
	case F16:
		return &[3][2]floatTile{{avx2F16x1x1, avx2F16x1x2}, {avx2F16x2x1, avx2F16x2x2}, {avx2F16x4x1, avx2F16x4x2}}
	case BF16:
		return &[3][2]floatTile{{avx2BF16x1x1, avx2BF16x1x2}, {avx2BF16x2x1, avx2BF16x2x2}, {avx2BF16x4x1, avx2BF16x4x2}}
	}
	return &[3][2]floatTile{{avx2F32x1x1, avx2F32x1x2}, {avx2F32x2x1, avx2F32x2x2}, {avx2F32x4x1, avx2F32x4x2}}
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
