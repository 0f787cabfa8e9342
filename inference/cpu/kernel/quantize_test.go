package kernel

import (
	"math"
	"slices"
	"testing"
)

// TestQuantize: the sets agree bit for bit, and the result is the definition.
func TestQuantize(t *testing.T) {
	r := newRand(1)
	for _, cols := range []int{32, 64, 96, 576, 1536} {
		x := normals(r, 3*cols)
		for i := range x[:cols] {
			x[i] *= float32(math.Exp2(float64(r.IntN(60) - 30)))
		}
		for _, s := range Sets() {
			a, want := guardedActs(t, 3, cols), guardedActs(t, 3, cols)
			for row := range 3 {
				in := guarded(t, x[row*cols:(row+1)*cols])
				s.Quantize(a, row, in)
				portableQuantize(want, row, in)
			}
			sameActs(t, s.Name, a, want)
			checkQuantized(t, s.Name, a, x)
		}
	}
}

func guardedActs(t *testing.T, rows, cols int) *Acts {
	a := new(Acts)
	a.Resize(rows, cols)
	a.Q, a.D, a.S, a.O = guarded(t, a.Q), guarded(t, a.D), guarded(t, a.S), guarded(t, a.O)
	return a
}

func sameActs(t *testing.T, name string, got, want *Acts) {
	t.Helper()
	if !slices.Equal(got.O, want.O) {
		t.Fatalf("%s: offsets differ: %v, want %v", name, got.O, want.O)
	}
	if !slices.Equal(got.Q, want.Q) {
		t.Fatalf("%s: codes differ:\n%v\n%v", name, got.Q, want.Q)
	}
	for i := range want.D {
		if got.D[i] != want.D[i] && want.D[i] == want.D[i] || got.S[i] != want.S[i] && want.S[i] == want.S[i] {
			t.Fatalf("%s: block %d has D %g S %g, want D %g S %g", name, i, got.D[i], got.S[i], want.D[i], want.S[i])
		}
		if (got.D[i] == got.D[i]) != (want.D[i] == want.D[i]) || (got.S[i] == got.S[i]) != (want.S[i] == want.S[i]) {
			t.Fatalf("%s: block %d: NaN is D %g S %g, want D %g S %g", name, i, got.D[i], got.S[i], want.D[i], want.S[i])
		}
	}
}

// checkQuantized holds every value to half a step, the code to ±127, S to D·ΣQ.
func checkQuantized(t *testing.T, name string, a *Acts, x []float32) {
	t.Helper()
	for b, d := range a.D {
		sum := 0
		for i, q := range a.Q[b*BlockCols : (b+1)*BlockCols] {
			v := float64(x[b*BlockCols+i])
			if q < -127 || math.Abs(float64(q)*float64(d)-v) > 0.5001*float64(d) {
				t.Fatalf("%s: %g became %d·%g", name, v, q, d)
			}
			sum += int(q)
		}
		if a.S[b] != d*float32(sum) || a.O[b] != int32(-128*sum) {
			t.Fatalf("%s: S is %g and O %d, want %g and %d", name, a.S[b], a.O[b], d*float32(sum), -128*sum)
		}
	}
}

// TestQuantizeSpecial puts each odd value into an ordinary block, and fills one.
func TestQuantizeSpecial(t *testing.T) {
	for _, v := range append(special, float32(math.Inf(-1)), minAmax, 4e-37, 3e-37, -math.MaxFloat32) {
		for _, fill := range []bool{false, true} {
			x := normals(newRand(2), 32)
			for i := range x {
				if fill || i == 17 {
					x[i] = v
				}
			}
			want := guardedActs(t, 1, 32)
			portableQuantize(want, 0, x)
			finite := !math.IsInf(float64(v), 0) && v == v
			if (want.S[0] == want.S[0]) != finite {
				t.Errorf("%g: S is %g", v, want.S[0])
			}
			for _, s := range Sets()[1:] {
				got := guardedActs(t, 1, 32)
				s.Quantize(got, 0, x)
				sameActs(t, s.Name, got, want)
			}
		}
	}
}
