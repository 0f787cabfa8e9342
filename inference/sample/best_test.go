package sample_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
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

// told is what a device tells of a row: the largest logits and the sum, penalised, in
// float32 and off by a part of what is allowed.
func told(s *sample.Sampler, logits []float32, n int, off float64) (ids []int32, values []float32, sum float64) {
	row := slices.Clone(logits)
	seen, penalty := s.Penalised()
	for _, id := range seen {
		if v := row[id]; v > 0 {
			row[id] = v / penalty
		} else {
			row[id] = v * penalty
		}
	}
	ids, values = largest(row, n)
	for _, v := range row {
		sum += math.Exp(float64(v-values[0]) * float64(s.Scale()))
	}
	return ids, values, sum * (1 + off*sample.SumError)
}

// twins are two samplers of the same parameters.
func twins(t testing.TB, p sample.Params, vocab int) (whole, best *sample.Sampler) {
	t.Helper()
	return newSampler(t, p, vocab), newSampler(t, p, vocab)
}

// drawBoth draws the next token from the whole row, and from its largest logits or, where
// these do not decide, from the whole row, too.
func drawBoth(t interface{ Fatalf(string, ...any) }, whole, best *sample.Sampler, logits []float32, n int, off float64) (want, got int32, decided bool) {
	want, err := whole.Sample(logits)
	if err != nil {
		t.Fatalf("the whole row: %v", err)
	}
	ids, values, sum := told(best, logits, n, off)
	got, decided, err = best.SampleBest(ids, values, sum)
	if err == nil && !decided {
		got, err = best.Sample(logits)
	}
	if err != nil {
		t.Fatalf("the largest: %v", err)
	}
	whole.Accept(want)
	best.Accept(got)
	return want, got, decided
}

// A draw from the largest logits is the draw from the whole row, number for number of
// the generator, or says that it is not decided: for rows of few and of many likely
// tokens, with ties, and all parameters, while penalties gather.
func TestSampleBestIsSample(t *testing.T) {
	draws, decisions := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		spread := rapid.SampledFrom([]float64{.02, .3, 1, 4}).Draw(r, "spread")
		grid := rapid.SampledFrom([]float64{1, 8, 1e6}).Draw(r, "steps of a logit")
		vocab := rapid.OneOf(rapid.IntRange(1, 90), rapid.IntRange(60, 1000)).Draw(r, "vocabulary")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "logits"), 0))
		p := sample.Params{
			Temperature:       rapid.SampledFrom([]float32{0, .01, .3, .7, 1, 1.5, 50}).Draw(r, "temperature"),
			TopK:              rapid.OneOf(rapid.Just(0), rapid.IntRange(1, 130)).Draw(r, "top k"),
			TopP:              rapid.OneOf(rapid.SampledFrom([]float32{0, .5, .9, .95, 1}), rapid.Float32Range(0, 1)).Draw(r, "top p"),
			MinP:              rapid.SampledFrom([]float32{0, 0, .01, .05, .37, 1}).Draw(r, "min p"),
			RepetitionPenalty: rapid.SampledFrom([]float32{0, 1, 1.05, 1.3, .5}).Draw(r, "penalty"),
			Seed:              rapid.Uint64().Draw(r, "seed"),
		}
		whole, best := twins(t, p, vocab)
		n := rapid.IntRange(best.Best(), sample.MaxBest).Draw(r, "candidates")
		off := rapid.SampledFrom([]float64{-1, -.01, 0, .01, 1}).Draw(r, "sum off")
		for range 20 {
			logits := make([]float32, vocab)
			for i := range logits {
				logits[i] = float32(math.Round(rng.NormFloat64()*spread*grid) / grid)
			}
			want, got, decided := drawBoth(r, whole, best, logits, n, off)
			if got != want {
				r.Fatalf("drew %d, want %d; decided: %v", got, want, decided)
			}
			if draws++; decided {
				decisions++
			}
		}
	})
	t.Logf("%d of %d draws were decided", decisions, draws)
	if decisions < draws/2 || decisions == draws {
		t.Errorf("%d of %d draws were decided: one side was hardly tried", decisions, draws)
	}
}

// Where it is not known whether there is anything to choose, no number is taken from the
// generator, so that the next draw has the number that it would have.
func TestSampleBestTakesNoNumberTooMany(t *testing.T) {
	probs := append([]float64{1, .5}, slices.Repeat([]float64{1e-4}, 62)...)
	logits := logs(append(probs, slices.Repeat([]float64{1e-6}, 300)...)...)
	// They come to 1.5065: the goal is a little under the weight of the first token.
	p := sample.Params{Temperature: 1, TopP: 1 / 1.50655}
	for p.Seed = range 20 {
		whole, best := twins(t, p, len(logits))
		if want, got, decided := drawBoth(t, whole, best, logits, sample.MaxBest, 0); want != 0 || got != 0 || decided {
			t.Errorf("drew %d and %d; decided: %v", want, got, decided)
		}
		flat := make([]float32, len(logits))
		if want, got, _ := drawBoth(t, whole, best, flat, sample.MaxBest, 0); want != got {
			t.Errorf("drew %d, want %d", got, want)
		}
	}
}

// Of rows as peaked as a model's, hardly any has to be fetched.
func TestMostDrawsAreDecided(t *testing.T) {
	const draws = 200
	for _, c := range []struct {
		p    sample.Params
		most int // fetched
	}{
		{sample.Params{Temperature: .7, TopP: .9}, 0},
		{sample.Params{Temperature: 1, TopP: .95, RepetitionPenalty: 1.1}, 3},
		{sample.Params{Temperature: 1, MinP: .05}, 0},
		{sample.Params{Temperature: 1, TopK: 200}, 60}, // of which the sum says little
		{sample.Params{Temperature: 1}, 12},
	} {
		logits := make([]float32, 400)
		whole, best := twins(t, c.p, len(logits))
		fetched := 0
		rng := rand.New(rand.NewPCG(5, 6))
		for range draws {
			for i, rank := range rng.Perm(len(logits)) {
				logits[i] = 12 - 2*float32(math.Log1p(float64(rank)))
			}
			want, got, decided := drawBoth(t, whole, best, logits, best.Best(), .1)
			if got != want {
				t.Fatalf("%+v: drew %d, want %d", c.p, got, want)
			}
			if !decided {
				fetched++
			}
		}
		t.Logf("%+v: %d of %d rows are fetched", c.p, fetched, draws)
		if fetched > c.most {
			t.Errorf("%+v: %d of %d rows are fetched, want at most %d", c.p, fetched, draws, c.most)
		}
	}
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
		{sample.Params{Temperature: 1, TopK: 65}, 64},
		{sample.Params{Temperature: 1}, 64},
		{sample.Params{RepetitionPenalty: 1.1}, 1},
		{sample.Params{Grammar: &evens{}}, 0},
	} {
		if got := newSampler(t, c.p, 1000).Best(); got != c.want {
			t.Errorf("%+v wants %d logits, want %d", c.p, got, c.want)
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
		if _, _, err := s.SampleBest(make([]int32, len(c.logits)), c.logits, 1); !errors.Is(err, c.want) {
			t.Errorf("%v: %v", c.logits, err)
		}
	}
}

// What a sampler cannot decide from a few logits it leaves, also where the sum is missing
// or no number.
func TestSampleBestDecidesNothing(t *testing.T) {
	flat := make([]float32, 64)
	ids := make([]int32, len(flat))
	for i := range ids {
		ids[i] = int32(i)
	}
	for _, p := range []sample.Params{
		{Grammar: &evens{}},
		{Temperature: 1},
		{Temperature: 1, TopP: .99},
		{Temperature: 1, MinP: .5},
	} {
		for _, sum := range []float64{0, math.NaN(), math.Inf(1), 1e9} {
			if id, decided, err := newSampler(t, p, 1_000_000).SampleBest(ids, flat, sum); decided || err != nil {
				t.Errorf("%+v, sum %g: drew %d, %v", p, sum, id, err)
			}
		}
	}
}
