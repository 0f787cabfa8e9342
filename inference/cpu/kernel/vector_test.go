package kernel

import (
	"fmt"
	"math"
	"testing"
)

// lengths cover every tail and the unrolled loops.
func lengths() []int {
	n := []int{64, 65, 71, 72, 95, 96, 127, 128, 576, 1000, 1537}
	for i := range 50 {
		n = append(n, i)
	}
	return n
}

// onSets runs f for every assembly set, every length and both guard placements.
func onSets(t *testing.T, f func(t *testing.T, s *Set, n int, guard func([]float32) []float32)) {
	for _, set := range Sets()[1:] {
		t.Run(set.Name, func(t *testing.T) {
			for _, n := range lengths() {
				f(t, set, n, func(x []float32) []float32 { return guarded(t, x) })
				f(t, set, n, func(x []float32) []float32 { return guardedBefore(t, x) })
			}
		})
	}
}

func TestDot(t *testing.T) {
	r, ref := newRand(1), Portable()
	onSets(t, func(t *testing.T, s *Set, n int, guard func([]float32) []float32) {
		a, b := guard(normals(r, n)), guard(normals(r, n))
		got, want := s.Dot(a, b), ref.Dot(a, b)
		near(t, fmt.Sprint("Dot ", n), []float32{got}, []float32{want}, math.Sqrt(float64(n)+1), 4e-6)
	})
}

// TestElementwise covers the kernels that change one vector by others.
func TestElementwise(t *testing.T) {
	kernels := []struct {
		name string
		run  func(s *Set, y, x, z []float32)
		tol  float64
	}{
		{"Axpy", func(s *Set, y, x, _ []float32) { s.Axpy(y, 0.37, x) }, 3e-7},
		{"Add", func(s *Set, y, x, _ []float32) { s.Add(y, x) }, 0},
		{"Scale", func(s *Set, y, _, _ []float32) { s.Scale(y, -1.7) }, 0},
		{"RMSNorm", func(s *Set, y, x, z []float32) { s.RMSNorm(y, x, z, 1e-5) }, 1e-6},
		{"RMSNorm in place", func(s *Set, y, _, z []float32) { s.RMSNorm(y, y, z, 1e-5) }, 1e-6},
		{"LayerNorm", func(s *Set, y, x, z []float32) { s.LayerNorm(y, x, z, z, 1e-5) }, 2e-6},
		{"LayerNorm in place", func(s *Set, y, x, z []float32) { s.LayerNorm(y, y, z, x, 1e-5) }, 2e-6},
		{"Softmax", func(s *Set, y, _, _ []float32) { s.Softmax(y) }, 1e-6},
		{"SiLUMul", func(s *Set, y, x, z []float32) { s.SiLUMul(y, x, z) }, 5e-7},
		{"SiLUMul in place", func(s *Set, y, _, z []float32) { s.SiLUMul(y, y, z) }, 5e-7},
		{"GELU", func(s *Set, y, _, _ []float32) { s.GELU(y) }, 1e-6},
		{"GELUTanhMul", func(s *Set, y, x, z []float32) { s.GELUTanhMul(y, x, z) }, 5e-7},
	}
	ref := Portable()
	for i, k := range kernels {
		t.Run(k.name, func(t *testing.T) {
			r := newRand(uint64(i))
			onSets(t, func(t *testing.T, s *Set, n int, guard func([]float32) []float32) {
				y, x, z := normals(r, n), normals(r, n), normals(r, n)
				got := guard(y)
				k.run(s, got, guard(x), guard(z))
				k.run(ref, y, x, z)
				near(t, fmt.Sprint(k.name, " ", n), got, y, maxAbs(y), k.tol)
			})
		})
	}
}

// TestRope checks both orders at every even length.
func TestRope(t *testing.T) {
	r, ref := newRand(2), Portable()
	onSets(t, func(t *testing.T, s *Set, n int, guard func([]float32) []float32) {
		n -= n % 2
		x, cos, sin := normals(r, n), guard(normals(r, n/2)), guard(normals(r, n/2))
		for _, k := range []struct {
			name       string
			run, plain func(x, cos, sin []float32)
		}{{"pairs", s.RopePairs, ref.RopePairs}, {"halves", s.RopeHalves, ref.RopeHalves}} {
			got, want := guard(x), append([]float32(nil), x...)
			k.run(got, cos, sin)
			k.plain(want, cos, sin)
			near(t, fmt.Sprint(k.name, " ", n), got, want, maxAbs(want), 3e-7)
		}
	})
}

// TestRotationIsOne: a rotation by an angle and back is the identity.
func TestRotationIsOne(t *testing.T) {
	r := newRand(3)
	for _, s := range Sets() {
		for _, rope := range []func(x, cos, sin []float32){s.RopePairs, s.RopeHalves} {
			x, cos, sin, back := normals(r, 64), make([]float32, 32), make([]float32, 32), make([]float32, 32)
			for i := range cos {
				sn, cs := math.Sincos(float64(i))
				cos[i], sin[i], back[i] = float32(cs), float32(sn), float32(-sn)
			}
			y := append([]float32(nil), x...)
			rope(y, cos, sin)
			rope(y, cos, back)
			near(t, s.Name, y, x, 1, 1e-6)
		}
	}
}

// special are the values on which float kernels go wrong.
var special = []float32{
	0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -1e-40, 1.1754944e-38,
	1e-20, -1e-6, 1, -1, 20, -20, 87, -87, 88.3, -88.3, 104, -104, 1000, -1000, 1e30, -1e30,
	math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN()),
}

// TestActivationsSpecial: no infinity or NaN appears where the true value is
// finite, and NaN is never swallowed.
func TestActivationsSpecial(t *testing.T) {
	ref := Portable()
	for _, s := range Sets()[1:] {
		x, up := append([]float32(nil), special...), make([]float32, len(special))
		for i := range up {
			up[i] = 1
		}
		for _, k := range []struct {
			name       string
			run, plain func(dst, gate, up []float32)
		}{
			{"SiLUMul", s.SiLUMul, ref.SiLUMul},
			{"GELUTanhMul", s.GELUTanhMul, ref.GELUTanhMul},
			{"GELU", func(d, g, _ []float32) { copy(d, g); s.GELU(d) }, func(d, g, _ []float32) { copy(d, g); ref.GELU(d) }},
		} {
			got, want := make([]float32, len(x)), make([]float32, len(x))
			k.run(got, x, up)
			k.plain(want, x, up)
			for i := range want {
				tol := 1e-30 + 5e-7*math.Abs(float64(want[i]))
				if math.Abs(float64(x[i])) < 100 {
					tol += 2e-7
				}
				near(t, fmt.Sprintf("%s %s(%g)", s.Name, k.name, x[i]), got[i:i+1], want[i:i+1], 1, tol)
			}
		}
	}
}

// TestSoftmaxRange sweeps the exponential through its whole range, by the
// softmax of {x, 0}, whose first value is eˣ/(1+eˣ).
func TestSoftmaxRange(t *testing.T) {
	for _, s := range Sets() {
		for x := -86.5; x <= 0; x += 0.0137 {
			p := []float32{float32(x), 0}
			s.Softmax(p)
			e := math.Exp(float64(float32(x)))
			want := e / (1 + e)
			if rel := math.Abs(float64(p[0])-want) / want; rel > 4e-7 {
				t.Fatalf("%s: softmax(%g, 0) is %g, want %g (relative %.2g)", s.Name, x, p[0], want, rel)
			}
		}
	}
}

// TestSoftmaxExtremes: masked scores weigh nothing and a NaN shows.
func TestSoftmaxExtremes(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, s := range Sets() {
		x := []float32{-inf, 3, -inf, 3, -200, -inf, -inf, -inf, -inf, -inf}
		s.Softmax(x)
		near(t, s.Name, x, []float32{0, 0.5, 0, 0.5, 0, 0, 0, 0, 0, 0}, 1, 1e-7)
		x = []float32{1, 2, float32(math.NaN()), 4, 5, 6, 7, 8, 9}
		s.Softmax(x)
		for i, v := range x {
			if v == v {
				t.Errorf("%s: NaN was swallowed: x[%d] = %g", s.Name, i, v)
			}
		}
		s.Softmax(nil)
	}
}
