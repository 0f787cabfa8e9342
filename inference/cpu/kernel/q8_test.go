package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// q8Blocks are inputs of one block each: random ones, and every odd value alone, in
// company and everywhere.
func q8Blocks() [][]float32 {
	r := newRand(9)
	var list [][]float32
	for e := -140; e <= 127; e += 3 {
		x := normals(r, BlockCols)
		for i := range x {
			x[i] = float32(math.Ldexp(float64(x[i])/8, e))
		}
		list = append(list, x)
	}
	odd := append([]float32{
		float32(math.Copysign(0, -1)), float32(math.Inf(-1)), -math.MaxFloat32, leastQ8, math.Nextafter32(leastQ8, 1), 65504 * 127, 65520 * 127,
		math.SmallestNonzeroFloat32,
	}, special...)
	for _, v := range odd {
		alone, among, all := make([]float32, BlockCols), normals(r, BlockCols), make([]float32, BlockCols)
		alone[5], among[31] = v, v
		for i := range all {
			all[i] = v
		}
		list = append(list, alone, among, all)
	}
	return list
}

// ties are blocks whose scale is one, so that codes are x rounded: at, just below and
// just above every tie.
func ties() [][]float32 {
	var list [][]float32
	var x []float32
	for k := range 127 {
		tie := float32(k) + 0.5
		for _, v := range []float32{tie, math.Nextafter32(tie, 0), math.Nextafter32(tie, 200)} {
			if x = append(x, v, -v); len(x) == 30 {
				list, x = append(list, append(x, 127, 0)), nil
			}
		}
	}
	for len(x) < 31 {
		x = append(x, 0)
	}
	return append(list, append(x, -127))
}

// TestToQ8 holds codes to the nearest ones, halves away from zero, and every set to
// the portable one, scales of infinities and NaN included.
func TestToQ8(t *testing.T) {
	for _, x := range append(q8Blocks(), ties()...) {
		q, d := make([]int8, BlockCols), make([]uint16, 1)
		portableToQ8(q, d, x)
		checkQ8(t, x, q, d[0])
		for _, s := range Sets()[1:] {
			got, scale := guarded(t, make([]int8, BlockCols)), guarded(t, make([]uint16, 1))
			s.ToQ8(got, scale, guarded(t, x))
			if !slices.Equal(got, q) || scale[0]&0x7fff != d[0]&0x7fff {
				t.Fatalf("%s: %g became %d × %#04x, want %d × %#04x", s.Name, x, got, scale[0], q, d[0])
			}
		}
	}
}

// checkQ8 compares a block with the definition in float64.
func checkQ8(t *testing.T, x []float32, q []int8, d uint16) {
	t.Helper()
	top := 0.0
	for _, v := range x {
		if a := math.Abs(float64(v)); a > top || math.IsNaN(a) {
			top = a
		}
	}
	scale := float64(f32FromF16(d))
	if math.IsNaN(top) || math.IsInf(top, 0) {
		if !math.IsNaN(scale) && !math.IsInf(scale, 0) {
			t.Fatalf("%g has the scale %g", x, scale)
		}
		return
	}
	if want := nearestHalf(float32(top / 127)); d != want {
		t.Fatalf("%g has the scale %#04x, want %#04x", x, d, want)
	}
	for i, c := range q {
		if off := float64(x[i])/(top/127) - float64(c); top > leastQ8 && !(math.Abs(off) <= 0.5001) || top <= leastQ8 && c != 0 {
			t.Fatalf("%g of %g became %d", x[i], top, c)
		}
	}
	if top == 127 { // the scale is one: no rounding before the last
		for i, c := range q {
			if float64(c) != math.Round(float64(x[i])) {
				t.Fatalf("%v became %d", x[i], c)
			}
		}
	}
}

// TestFromQ8: every code with every scale, exactly.
func TestFromQ8(t *testing.T) {
	const codes = 256
	q, d, got := make([]int8, codes), make([]uint16, codes/BlockCols), make([]float32, codes)
	for i := range q {
		q[i] = int8(i)
	}
	for h := range 1 << 16 {
		for i := range d {
			d[i] = uint16(h)
		}
		for _, s := range Sets() {
			s.FromQ8(got, q, d)
			for i, v := range got {
				want := float64(q[i]) * float64(f32FromF16(uint16(h)))
				if float64(v) != want && !(math.IsNaN(float64(v)) && math.IsNaN(want)) {
					t.Fatalf("%s: %d × %#04x is %g, want %g", s.Name, q[i], h, v, want)
				}
			}
		}
	}
}

// TestQ8Lengths: any number of blocks, none too, and nothing outside them.
func TestQ8Lengths(t *testing.T) {
	r := newRand(3)
	for n := range 12 {
		x := normals(r, n*BlockCols)
		q, d, back := make([]int8, len(x)), make([]uint16, n), make([]float32, len(x))
		portableToQ8(q, d, x)
		portableFromQ8(back, q, d)
		for _, s := range Sets() {
			for _, place := range []func(testing.TB, []float32) []float32{guarded[float32], guardedBefore[float32]} {
				name := fmt.Sprint(s.Name, " ", n)
				gq, gd := guarded(t, make([]int8, len(x))), guarded(t, make([]uint16, n))
				s.ToQ8(gq, gd, place(t, x))
				if !slices.Equal(gq, q) || !slices.Equal(gd, d) {
					t.Fatalf("%s: other codes or scales", name)
				}
				got := place(t, make([]float32, len(x)))
				s.FromQ8(got, gq, gd)
				same(t, name, got, back)
			}
		}
	}
}
