package bench

import (
	"math"
	"testing"
)

func TestPromises(t *testing.T) {
	of := func(p Promise) Asked { p.Asked = 1000; return Asked{Promise: &p} }
	got := kept([]Asked{
		of(Promise{Predicted: 900, Observed: 800}),                                        // in time, 12.5 % too long
		of(Promise{Predicted: 990, Observed: 1100}),                                       // late, 10 % too short
		of(Promise{Predicted: 1500, Observed: 1500, Fixed: true}),                         // could not be in time
		of(Promise{Predicted: 700, Observed: 700, Dropped: []int{500, 100}, PerToken: 1}), // one of two would have fitted
		of(Promise{Predicted: 700, Observed: 700, Dropped: []int{200, 90}, PerToken: 1}),  // both
		of(Promise{Observed: 100}),                                                        // no rate known
		of(Promise{}), {},                                                                 // no first token, no promise
	})
	want := Promises{Asked: 1000, Count: 6, Within: 4.0 / 5, Impossible: 1, ErrorP50: 0, ErrorP95: 0.125, Bias: 0, Meagre: 1, Cut: 2}
	if got == nil || math.Abs(got.ErrorP95-want.ErrorP95) > 1e-12 {
		t.Fatalf("%+v", got)
	}
	got.ErrorP95 = want.ErrorP95
	if *got != want {
		t.Errorf("%+v, want %+v", *got, want)
	}
	if kept([]Asked{{}}) != nil {
		t.Error("promises where none were asked for")
	}
}
