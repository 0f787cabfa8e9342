package kernel

import (
	"math"
	"reflect"
	"testing"
)

// TestSetsAreComplete: no set has a kernel missing, names differ, and the best
// is one of them.
func TestSetsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Sets() {
		v := reflect.ValueOf(*s)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s has no %s", s.Name, v.Type().Field(i).Name)
			}
		}
		if seen[s.Name] {
			t.Errorf("two sets are called %s", s.Name)
		}
		seen[s.Name] = true
	}
	if !seen[Best().Name] || !seen["portable"] {
		t.Errorf("best is %s of %v", Best().Name, seen)
	}
}

// TestNoAllocation: nothing is allocated for a token.
func TestNoAllocation(t *testing.T) {
	r := newRand(1)
	const n = 64
	x, y, z := normals(r, n), normals(r, n), normals(r, n)
	k, v := halves(r, 16*n), halves(r, 16*n)
	a, q, f := quantised(r, 5, n), randomMatrix(t, r, Q4_1, 24, n), randomMatrix(t, r, F16, 24, n)
	out, wide, rows := make([]float32, 5*24), normals(r, 5*n), make([]float32, 5*n)
	st, runs := make([]SoftmaxState, 5), []Run{{0, 16}}
	for i := range st {
		st[i].Max = float32(math.Inf(-1))
	}
	for _, s := range Sets()[1:] {
		allocs := testing.AllocsPerRun(10, func() {
			s.Quantize(a, 0, x)
			s.MatMul(out, 24, a, 0, 5, q, 0, 24)
			s.MatMulF32(out, 24, wide, n, 0, 5, f, 0, 24)
			s.AttendTile(st, rows, wide, k, v, runs, n, 0.1)
			s.RMSNorm(y, x, z, 1e-5)
			s.RopePairs(x, y, z)
			s.SiLUMul(y, x, z)
			s.ToF16(k[:n], x)
			s.ToQ8(a.Q[:n], v[:n/BlockCols], x)
			s.FetchQ8(a.Q[:n], v[:n/BlockCols])
			s.FromQ8(y, a.Q[:n], v[:n/BlockCols])
		})
		if allocs != 0 {
			t.Errorf("%s: %g allocations", s.Name, allocs)
		}
	}
}
