package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// The first and the last row of a text are off by the rounding to two bytes, the
// others by that to one, for every type, every set and wherever tiles end.
func TestEdgesOfTextsAreFiner(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	lengths := []int{1, 2, 70, 3, 130, 1}
	for _, set := range kernel.Sets() {
		for _, typ := range []quant.Type{quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0} {
			t.Run(fmt.Sprintf("%s/%s", set.Name, typ), func(t *testing.T) {
				errs := productErrors(t, r, Config{Threads: 2, Kernels: set}, typ, lengths)
				row, coarse := 0, 0.0
				for _, n := range lengths {
					for i := range n {
						if edge := i == 0 || i == n-1; edge && errs[row] > 3e-5 {
							t.Errorf("row %d of %d is off by %.1e", i, n, errs[row])
						} else if !edge {
							coarse = max(coarse, errs[row])
						}
						row++
					}
				}
				if coarse < 1e-4 || coarse > 1e-2 {
					t.Errorf("the other rows are off by %.1e at most", coarse)
				}
			})
		}
	}
}

// productErrors is the largest error of each row in a product over texts, as a
// part of the sum of magnitudes.
func productErrors(t *testing.T, r *rand.Rand, cfg Config, typ quant.Type, lengths []int) []float64 {
	const in, out = 96, 77
	b := newBackend(t, cfg)
	texts, rows := make([]model.Text, len(lengths)), 0
	for i, n := range lengths {
		texts[i].Tokens, rows = make([]int32, n), rows+n
	}
	b.BeginTexts(texts)
	x := random(r, rows*in)
	w, decoded := b.weights(t, typ, out, in, random(r, out*in))
	dst := b.filled(t, out, make([]float32, rows*out))
	b.Project(b.filled(t, in, x), model.Norm{}, model.Projection{Linear: model.Linear{W: w}, Out: dst})
	errs := make([]float64, rows)
	for i := range rows {
		for j := range out {
			want, size := 0.0, 0.0
			for k := range in {
				p := float64(x[i*in+k]) * float64(decoded[j*in+k])
				want += p
				size += math.Abs(p)
			}
			errs[i] = max(errs[i], math.Abs(float64(dst.row(i)[j])-want)/size)
		}
	}
	return errs
}

// A step of a decoder that follows has no such rows.
func TestDecodersHaveNoFinerRows(t *testing.T) {
	b := newBackend(t, Config{Threads: 1})
	b.BeginTexts([]model.Text{{Tokens: make([]int32, 5)}})
	b.seat.end()
	b.begin(5)
	defer b.seat.end()
	w, _ := b.weights(t, quant.Q4_0, 32, 32, random(rand.New(rand.NewPCG(5, 6)), 32*32))
	dst := b.filled(t, 32, make([]float32, 5*32))
	b.Project(b.filled(t, 32, make([]float32, 5*32)), model.Norm{}, model.Projection{Linear: model.Linear{W: w}, Out: dst})
	if n := len(b.input.finer.rows); n != 0 {
		t.Errorf("%d rows of a decoder's step are quantised twice", n)
	}
}
