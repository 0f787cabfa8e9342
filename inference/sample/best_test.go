package sample_test

import (
	"errors"
	"math"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"ragd/inference/sample"
)

// largest is the n largest logits in the order that SampleBest wants.
func largest(logits []float32, n int) (ids []int32, values []float32) {
	for i := range logits {
		ids = append(ids, int32(i))
	}
	sort.SliceStable(ids, func(i, j int) bool { return logits[ids[i]] > logits[ids[j]] })
	ids = ids[:min(n, len(ids))]
	for _, id := range ids {
		values = append(values, logits[id])
	}
	return ids, values
}

// A draw from the largest logits is the draw from the whole row, number for number of
// the generator.
func TestSampleBestIsSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logits := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float32 {
			return float32(rapid.IntRange(-40, 40).Draw(t, "eighths")) / 8
		}), 1, 90).Draw(t, "logits")
		p := sample.Params{
			Temperature: rapid.SampledFrom([]float32{0, .01, .3, 1, 50}).Draw(t, "temperature"),
			TopK:        rapid.IntRange(1, sample.MaxBest).Draw(t, "top k"),
			TopP:        rapid.Float32Range(0, 1).Draw(t, "top p"),
			MinP:        rapid.SampledFrom([]float32{0, .01, .37}).Draw(t, "min p"),
			Seed:        rapid.Uint64().Draw(t, "seed"),
		}
		whole, err := sample.New(p, len(logits))
		if err != nil {
			t.Fatal(err)
		}
		best, err := sample.New(p, len(logits))
		if err != nil {
			t.Fatal(err)
		}
		n := best.Best()
		if n < 1 {
			t.Fatalf("%+v needs the whole row", p)
		}
		more := rapid.IntRange(n, 2*sample.MaxBest).Draw(t, "candidates")
		for range 5 {
			want, err := whole.Sample(logits)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := best.SampleBest(largest(logits, more)); err != nil || got != want {
				t.Fatalf("drew %d, %v; want %d", got, err, want)
			}
		}
	})
}

func TestBest(t *testing.T) {
	for _, c := range []struct {
		p    sample.Params
		want int
	}{
		{sample.Params{}, 1},
		{sample.Params{Temperature: 1, TopK: 1}, 1},
		{sample.Params{Temperature: 1, TopK: 40, TopP: .9}, 40},
		{sample.Params{Temperature: 1, TopK: 64}, 64},
		{sample.Params{Temperature: 1, TopK: 65}, 0},
		{sample.Params{Temperature: 1}, 0},
		{sample.Params{RepetitionPenalty: 1.1}, 0},
		{sample.Params{Grammar: &evens{}}, 0},
	} {
		if got := newSampler(t, c.p, 1000).Best(); got != c.want {
			t.Errorf("%+v needs %d logits, want %d", c.p, got, c.want)
		}
	}
	if got := newSampler(t, sample.Params{Temperature: 1, TopK: 50}, 9).Best(); got != 9 {
		t.Errorf("%d logits of a vocabulary of 9", got)
	}
}

func TestSampleBestErrors(t *testing.T) {
	s := newSampler(t, sample.Params{Temperature: 1, TopK: 2}, 9)
	for _, c := range []struct {
		logits []float32
		want   error
	}{
		{nil, sample.ErrNoToken},
		{[]float32{-inf, -inf}, sample.ErrNoToken},
		{[]float32{float32(math.NaN()), 1}, sample.ErrNotFinite},
		{[]float32{inf, 1}, sample.ErrNotFinite},
	} {
		if _, err := s.SampleBest(make([]int32, len(c.logits)), c.logits); !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.logits, err)
		}
	}
}
