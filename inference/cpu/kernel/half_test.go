package kernel

import (
	"fmt"
	"math"
	"testing"
)

// TestHalfRoundTrip: every half survives widening and narrowing, in every set.
func TestHalfRoundTrip(t *testing.T) {
	all := make([]uint16, 1<<16)
	for i := range all {
		all[i] = uint16(i)
	}
	wide, back := make([]float32, len(all)), make([]uint16, len(all))
	for _, s := range Sets() {
		s.FromF16(wide, all)
		s.ToF16(back, wide)
		for i, h := range all {
			want := h
			if h&0x7c00 == 0x7c00 && h&0x3ff != 0 {
				want |= 0x200 // a signalling NaN turns quiet
			}
			if back[i] != want {
				t.Fatalf("%s: %#04x became %g and then %#04x", s.Name, h, wide[i], back[i])
			}
			if math.Float32bits(wide[i]) != math.Float32bits(f32FromF16(h)) {
				t.Fatalf("%s: %#04x is %x, want %x", s.Name, h, math.Float32bits(wide[i]), math.Float32bits(f32FromF16(h)))
			}
		}
	}
}

// TestToF16 covers rounding at, just below and just above every tie.
func TestToF16(t *testing.T) {
	var src []float32
	for h := range uint16(0x7c00) {
		lo := math.Float32bits(f32FromF16(h))
		next := f32FromF16(h + 1)
		if h == 0x7bff {
			next = 65536
		}
		tie := math.Float32bits((math.Float32frombits(lo) + next) / 2)
		for _, b := range []uint32{lo, lo + 1, tie - 1, tie, tie + 1} {
			src = append(src, math.Float32frombits(b), -math.Float32frombits(b))
		}
	}
	src = append(src, special...)
	want := make([]uint16, len(src))
	for i, v := range src {
		want[i] = nearestHalf(v)
	}
	got := make([]uint16, len(src))
	for _, s := range Sets() {
		s.ToF16(got, src)
		for i := range src {
			if got[i] != want[i] {
				t.Fatalf("%s: %g (%x) became %#04x, want %#04x", s.Name, src[i], math.Float32bits(src[i]), got[i], want[i])
			}
		}
	}
}

// nearestHalf rounds in float64, where the steps of a half are exact.
func nearestHalf(f float32) uint16 {
	sign := uint16(math.Float32bits(f)>>16) & 0x8000
	a := math.Abs(float64(f))
	switch {
	case math.IsNaN(a):
		return sign | 0x7e00
	case a >= 65520:
		return sign | 0x7c00
	case a < 0x1p-14:
		return sign | uint16(math.RoundToEven(a*0x1p24))
	}
	_, e := math.Frexp(a) // a = m·2^e, m in [½,1)
	m := uint16(math.RoundToEven(math.Ldexp(a, 11-e)))
	return sign + uint16(e+13)<<10 + m
}

func TestHalfKernels(t *testing.T) {
	r, ref := newRand(4), Portable()
	for _, s := range Sets()[1:] {
		for _, n := range lengths() {
			a, b := guarded(t, normals(r, n)), guarded(t, halves(r, n))
			name := fmt.Sprint(s.Name, " ", n)
			near(t, name, []float32{s.DotF16(a, b)}, []float32{ref.DotF16(a, b)}, math.Sqrt(float64(n)+1), 4e-6)
			want := append([]float32(nil), a...)
			s.AxpyF16(a, 0.3, b)
			ref.AxpyF16(want, 0.3, b)
			near(t, name, a, want, maxAbs(want), 2e-7)
			s.ToF16(b, want)
			s.FromF16(a, b)
			near(t, name, a, want, maxAbs(want), 1.0/2048)
		}
	}
}
