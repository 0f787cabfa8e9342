package kernel

// quantTile is a generated product of some activation rows with strips, or with
// pairs of strips.
type quantTile func(dst *float32, stride int, q *int8, cols int, d, s *float32, o *int32, w *byte, groups, strips int)

// quantTiles are the tiles for 1, 2 and 4 rows.
type quantTiles struct{ one, two, four quantTile }

// panelBytes of weights are multiplied with all rows before the next panel, so
// that they are read from the second-level cache; it also bounds one assembly
// call, which cannot be preempted, to some tens of microseconds.
const panelBytes = 128 << 10

// quantMatMul walks panels of strips, and in a panel tiles of rows. Every tile
// reduces an element in the same order.
func quantMatMul(tiles quantTiles, dst []float32, stride int, a *Acts, rlo, rhi int, w *Matrix, clo, chi int) {
	whole := clo + (chi-clo)/PackRows*PackRows
	panel := max(1, panelBytes/w.strip) * PackRows
	for c := clo; c < whole; c += panel {
		strips := min(panel, whole-c) / PackRows
		for r := rlo; r < rhi; {
			r += tiles.run(dst[r*stride+c:], stride, a, r, rhi, w, c, strips)
		}
	}
	if whole < chi {
		partialStrip(tiles, dst, stride, a, rlo, rhi, w, whole, chi)
	}
}

// partialStrip computes the last, padded strip aside and copies what is real.
func partialStrip(tiles quantTiles, dst []float32, stride int, a *Acts, rlo, rhi int, w *Matrix, clo, chi int) {
	var out [4 * PackRows]float32
	for r := rlo; r < rhi; {
		n := tiles.run(out[:], PackRows, a, r, rhi, w, clo, 1)
		for i := range n {
			copy(dst[(r+i)*stride+clo:(r+i)*stride+chi], out[i*PackRows:])
		}
		r += n
	}
}

// run computes strips from weight row c on for as many of the rows [r,rhi) as
// the widest tile takes, and says how many.
func (t quantTiles) run(dst []float32, stride int, a *Acts, r, rhi int, w *Matrix, c, strips int) int {
	switch left := rhi - r; {
	case left < 2:
		t.one.run(dst, stride, a, r, w, c, strips)
		return 1
	case left < 4:
		t.two.run(dst, stride, a, r, w, c, strips)
		return 2
	}
	t.four.run(dst, stride, a, r, w, c, strips)
	return 4
}

func (f quantTile) run(dst []float32, stride int, a *Acts, r int, w *Matrix, c, strips int) {
	blocks := a.Cols / BlockCols
	f(&dst[0], stride, &a.Q[r*a.Cols], a.Cols, &a.D[r*blocks], &a.S[r*blocks], &a.O[r*blocks],
		&w.data[c/PackRows*w.strip], w.cols/w.lay.cols(), strips)
}
