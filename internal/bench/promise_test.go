package bench

import (
	"math"
	"testing"
)

func TestPromises(t *testing.T) {
	of := func(p Promise) Asked { p.Asked = 1000; return Asked{Promise: &p} }
	got := kept([]Asked{
		of(Promise{Predicted: 900, Observed: 800}),                                                     // in time, 12.5 % too long
		of(Promise{Predicted: 990, Observed: 1100}),                                                    // late, 10 % too short
		of(Promise{Predicted: 1500, Observed: 1500, Fixed: true}),                                      // could not be in time
		of(Promise{Predicted: 700, Observed: 700, Dropped: []int{500, 100}, Fresh: 600, Prefill: 600}), // one of two would have fitted
		of(Promise{Predicted: 700, Observed: 700, Dropped: []int{200, 90}, Fresh: 600, Prefill: 600}),  // both
		of(Promise{Observed: 100}),                                                                     // no rate known
		of(Promise{}), {},                                                                              // no first token, no promise
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

// A token more costs what it costs behind the others, not what one costs on average.
func TestMeagreGoesByTheMargin(t *testing.T) {
	of := func(fresh int, prefill, observed float64, dropped ...int) Asked {
		return Asked{Promise: &Promise{Asked: 1000, Observed: observed, Predicted: observed, Fresh: fresh, Prefill: prefill, Dropped: dropped}}
	}
	// 1 ms a token on average at 500, 2 ms for each more.
	answered := []Asked{of(500, 500, 500, 150, 150), of(600, 700, 700, 100), of(550, 600, 600, 90, 100)}
	if got := kept(answered); got.Meagre != 1 || got.Cut != 3 {
		t.Errorf("%+v, want the last alone: 300 tokens take 600 ms, 190 take 380", got)
	}
}
