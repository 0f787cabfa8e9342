package kernel

import (
	"fmt"
	"math"
	"testing"
)

// TestMatMul holds every set to a float64 product of decoded weights and
// decoded activations, at every row tile, partial strips and with guard pages
// behind all operands.
func TestMatMul(t *testing.T) {
	r := newRand(1)
	for _, typ := range quantTypes {
		for _, cols := range []int{256, 512, 768} {
			for _, n := range []int{1, 7, 8, 17, 40} {
				w := randomMatrix(t, r, typ, n, cols)
				w.data = guarded(t, w.data)
				for rows := 1; rows <= 9; rows++ {
					a := quantised(r, rows, cols)
					a.Q, a.D, a.S, a.O = guarded(t, a.Q), guarded(t, a.D), guarded(t, a.S), guarded(t, a.O)
					checkMatMul(t, typ, a, w)
				}
			}
		}
	}
}

func checkMatMul(t *testing.T, typ Type, a *Acts, w *Matrix) {
	t.Helper()
	want, scale := exactProduct(a, w)
	for _, set := range Sets() {
		got := guarded(t, make([]float32, a.Rows*w.Rows()))
		set.MatMul(got, w.Rows(), a, 0, a.Rows, w, 0, w.Rows())
		name := fmt.Sprintf("%s %s %d×%d rows %d", set.Name, typeNames[typ], w.Rows(), w.Cols(), a.Rows)
		near(t, name, got, want, scale, 2e-6)
	}
}

// exactProduct computes in float64 from decoded values; scale bounds the sum of
// the magnitudes of the terms.
func exactProduct(a *Acts, w *Matrix) (out []float32, scale float64) {
	row := make([]float32, w.Cols())
	out = make([]float32, a.Rows*w.Rows())
	for c := range w.Rows() {
		w.Row(row, c)
		for r := range a.Rows {
			var sum, abs float64
			for k, v := range row {
				x := float64(a.Q[r*a.Cols+k]) * float64(a.D[(r*a.Cols+k)/BlockCols])
				sum += x * float64(v)
				abs += math.Abs(x * float64(v))
			}
			out[r*w.Rows()+c] = float32(sum)
			scale = max(scale, abs)
		}
	}
	return out, scale
}

// TestMatMulShortRows covers widths below a K block.
func TestMatMulShortRows(t *testing.T) {
	r := newRand(2)
	for _, typ := range []Type{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0} {
		for cols := 32; cols <= 192; cols += 32 {
			w := randomMatrix(t, r, typ, 11, cols)
			w.data = guardedBefore(t, w.data)
			checkMatMul(t, typ, quantised(r, 5, cols), w)
		}
	}
}

// TestMatMulExtremes drives the integer sums to their ends.
func TestMatMulExtremes(t *testing.T) {
	const cols = 256
	for _, typ := range quantTypes {
		lay := layouts[typ]
		for _, fill := range []byte{0x00, 0x7f, 0x80, 0xff} {
			src := randomWeights(newRand(3), typ, 8, cols)
			for i := range src {
				at := i % lay.srcLen
				float := at < 2 || at < 4 && lay.mins
				if typ == Q6_K {
					float = at >= 208
				}
				if !float {
					src[i] = fill
				}
			}
			w, err := Pack(typ, 8, cols, src)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range []int8{127, -127} {
				a := quantised(newRand(4), 4, cols)
				for i := range a.Q {
					a.Q[i] = q
				}
				for i := range a.S {
					a.S[i] = a.D[i] * 32 * float32(q)
					a.O[i] = -128 * 32 * int32(q)
				}
				checkMatMul(t, typ, a, w)
			}
		}
	}
}

// TestBatchInvariance: an element has the same bits alone and in any tile.
func TestBatchInvariance(t *testing.T) {
	r := newRand(5)
	const rows, n, cols = 11, 43, 512
	for _, set := range Sets() {
		for _, typ := range quantTypes {
			a, w := quantised(r, rows, cols), randomMatrix(t, r, typ, n, cols)
			all, one := make([]float32, rows*n), make([]float32, rows*n)
			set.MatMul(all, n, a, 0, rows, w, 0, n)
			for i := range rows {
				for c := 0; c < n; c += PackRows {
					set.MatMul(one, n, a, i, i+1, w, c, min(c+PackRows, n))
				}
			}
			same(t, set.Name+" "+typeNames[typ], one, all)
		}
		for _, typ := range floatTypes {
			x, w := normals(r, rows*cols), randomMatrix(t, r, typ, n, cols)
			all, one := make([]float32, rows*n), make([]float32, rows*n)
			set.MatMulF32(all, n, x, cols, 0, rows, w, 0, n)
			for i := range rows {
				for c := 0; c < n; c += PackRows {
					set.MatMulF32(one, n, x, cols, i, i+1, w, c, min(c+PackRows, n))
				}
			}
			same(t, set.Name+" "+typeNames[typ], one, all)
		}
	}
}

// TestMatMulScales puts odd scales into the weights: zeros, subnormal halves, the
// largest one.
func TestMatMulScales(t *testing.T) {
	const cols = 256
	for _, typ := range quantTypes {
		for _, d := range []uint16{0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff} {
			lay := layouts[typ]
			src := randomWeights(newRand(9), typ, 9, cols)
			for at := 0; at < len(src); at += lay.srcLen {
				if typ == Q6_K {
					at += 208
				}
				src[at], src[at+1] = byte(d), byte(d>>8)
				if typ == Q6_K {
					at -= 208
				}
			}
			w, err := Pack(typ, 9, cols, src)
			if err != nil {
				t.Fatal(err)
			}
			checkMatMul(t, typ, quantised(newRand(10), 5, cols), w)
		}
	}
}

// TestMatMulShowsNaN: an activation that is infinite or NaN makes every output of
// its row NaN, and no output of another row.
func TestMatMulShowsNaN(t *testing.T) {
	const cols, n, rows = 256, 19, 6
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		for _, s := range Sets() {
			a := quantised(newRand(11), rows, cols)
			x := normals(newRand(12), cols)
			x[77] = bad
			s.Quantize(a, 3, x)
			for _, typ := range quantTypes {
				w, out := randomMatrix(t, newRand(13), typ, n, cols), make([]float32, rows*n)
				s.MatMul(out, n, a, 0, rows, w, 0, n)
				for i, v := range out {
					if (v != v) != (i/n == 3) {
						t.Fatalf("%s %s: %g in row %d, output %d is %g", s.Name, typeNames[typ], bad, i/n, i%n, v)
					}
				}
			}
		}
	}
}

// TestSetsAgree: assembly sets of one architecture give the same bits, so that
// answers do not depend on how new the processor is.
func TestSetsAgree(t *testing.T) {
	r, sets := newRand(8), Sets()[1:]
	for _, typ := range quantTypes {
		a, w := quantised(r, 7, 512), randomMatrix(t, r, typ, 19, 512)
		want, got := make([]float32, 7*19), make([]float32, 7*19)
		for i, s := range sets {
			s.MatMul(got, 19, a, 0, 7, w, 0, 19)
			if i == 0 {
				copy(want, got)
			}
			same(t, s.Name+" "+typeNames[typ], got, want)
		}
	}
}

// TestMatMulF32 covers every tile, odd widths and padded strides.
func TestMatMulF32(t *testing.T) {
	r := newRand(6)
	for _, typ := range floatTypes {
		for _, cols := range []int{1, 2, 3, 4, 5, 7, 31, 33, 384} {
			for _, n := range []int{1, 8, 15, 16, 33} {
				w := randomMatrix(t, r, typ, n, cols)
				w.data, w.f32 = guarded(t, w.data), guarded(t, w.f32)
				for rows := 1; rows <= 7; rows++ {
					x := guarded(t, normals(r, rows*(cols+3)-3))
					want := make([]float32, rows*n)
					portableMatMulF32(want, n, x, cols+3, 0, rows, w, 0, n)
					for _, set := range Sets()[1:] {
						got := guarded(t, make([]float32, rows*n))
						set.MatMulF32(got, n, x, cols+3, 0, rows, w, 0, n)
						near(t, set.Name+" "+typeNames[typ], got, want, math.Sqrt(float64(cols)), 1e-5)
					}
				}
			}
		}
	}
}

// FuzzMatMul compares the sets over shapes and data.
func FuzzMatMul(f *testing.F) {
	f.Add(uint8(1), uint8(3), uint8(9), uint8(2), uint64(1))
	f.Add(uint8(5), uint8(8), uint8(1), uint8(1), uint64(2))
	f.Add(uint8(7), uint8(4), uint8(70), uint8(3), uint64(3))
	f.Fuzz(func(t *testing.T, typ, rows, n, blocks uint8, seed uint64) {
		r, k := newRand(seed), quantTypes[int(typ)%len(quantTypes)]
		lay := layouts[k]
		w := randomMatrix(t, r, k, 1+int(n), lay.cols()*(1+int(blocks)%4))
		w.data = guarded(t, w.data)
		checkMatMul(t, k, quantised(r, 1+int(rows)%16, w.Cols()), w)
	})
}
