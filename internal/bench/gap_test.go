package bench

import (
	"math"
	"testing"
)

// A gap is compared with the plain step that the answer has by then: one that grows
// from 2 to 6 ms.
func TestGapsAreComparedWithTheirOwnStep(t *testing.T) {
	over := overPlain([]float64{5, 8, 11, 5.5}, 2, 6)
	for i, want := range []float64{2, 8 / 3.5, 11 / 4.5, 1} {
		if math.Abs(over[i]-want) > 1e-9 {
			t.Errorf("gap %d: %.3f times the plain step, want %.3f", i, over[i], want)
		}
	}
}
