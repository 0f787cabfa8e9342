package sample_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ragd/inference/sample"
)

var inf = float32(math.Inf(1))

func newSampler(t testing.TB, p sample.Params, vocab int) *sample.Sampler {
	t.Helper()
	s, err := sample.New(p, vocab)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// logs turns probabilities into logits.
func logs(probs ...float64) []float32 {
	out := make([]float32, len(probs))
	for i, p := range probs {
		out[i] = float32(math.Log(p))
	}
	return out
}

// dense is the distribution over the whole vocabulary.
func dense(t testing.TB, s *sample.Sampler, logits []float32) []float64 {
	t.Helper()
	dist, err := s.Distribution(logits)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(logits))
	for _, c := range dist {
		out[c.ID] += c.P
	}
	return out
}

func TestDistribution(t *testing.T) {
	five := logs(.50, .25, .12, .08, .05)
	tests := []struct {
		name   string
		p      sample.Params
		logits []float32
		want   []float64
	}{
		{"cold", sample.Params{Temperature: .5}, []float32{2, 1, 0}, []float64{.87, .12, .02}},
		{"as it is", sample.Params{Temperature: 1}, []float32{2, 1, 0}, []float64{.67, .24, .09}},
		{"hot", sample.Params{Temperature: 2}, []float32{2, 1, 0}, []float64{.51, .31, .19}},
		{"top-p keeps the first three", sample.Params{Temperature: 1, TopP: .8}, five, []float64{.575, .287, .138, 0, 0}},
		{"top-p reached exactly", sample.Params{Temperature: 1, TopP: .75}, five, []float64{.667, .333, 0, 0, 0}},
		{"tiny top-p keeps the best", sample.Params{Temperature: 1, TopP: 1e-9}, five, []float64{1, 0, 0, 0, 0}},
		{"top-k", sample.Params{Temperature: 1, TopK: 2}, five, []float64{.667, .333, 0, 0, 0}},
		{"top-k above the vocabulary", sample.Params{Temperature: 1, TopK: 99}, five, []float64{.5, .25, .12, .08, .05}},
		{"top-p works on what top-k left", sample.Params{Temperature: 1, TopK: 3, TopP: .8}, five, []float64{.667, .333, 0, 0, 0}},
		{"min-p", sample.Params{Temperature: 1, MinP: .2}, five, []float64{.575, .287, .138, 0, 0}},
		{"min-p of one", sample.Params{Temperature: 1, MinP: 1}, five, []float64{1, 0, 0, 0, 0}},
		{"filters follow the temperature", sample.Params{Temperature: .5, TopP: .8}, five, []float64{.8, .2, 0, 0, 0}},
		{"ties at top-k go to the lower id", sample.Params{Temperature: 1, TopK: 2}, []float32{0, 3, 3, 3}, []float64{0, .5, .5, 0}},
		{"ruled out tokens stay out", sample.Params{Temperature: 100}, []float32{-inf, 1, -inf, 1}, []float64{0, .5, 0, .5}},
		{"extreme logits", sample.Params{Temperature: 100}, []float32{math.MaxFloat32, -math.MaxFloat32}, []float64{1, 0}},
		{"greedy", sample.Params{}, []float32{1, 3, 2}, []float64{0, 1, 0}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got := dense(t, newSampler(t, tc.p, len(tc.logits)), tc.logits)
			for i := range got {
				if !(math.Abs(got[i]-tc.want[i]) <= .0051) {
					t.Fatalf("got %.3f, want %.3f", got, tc.want)
				}
			}
		})
	}
}

func TestGreedy(t *testing.T) {
	for _, temperature := range []float32{0, 1e-12, 1e-6} {
		s := newSampler(t, sample.Params{Temperature: temperature, TopP: .9, MinP: .1}, 4)
		for range 20 {
			if id, err := s.Sample([]float32{1, 5, 5, 2}); err != nil || id != 1 {
				t.Fatalf("temperature %v: id %d, %v; want the lower of the two best", temperature, id, err)
			}
		}
	}
}

func TestRepetitionPenalty(t *testing.T) {
	logits := []float32{2, -2, 2, -2, 0}
	s := newSampler(t, sample.Params{Temperature: 1, RepetitionPenalty: 2}, 5)
	s.Observe(1)                                    // of the prompt
	for _, id := range []int32{0, 1, 1, 4, -1, 5} { // twice counts once, no such token counts nothing
		s.Accept(id)
	}
	got := dense(t, s, logits)
	want := []float64{1, -4, 2, -2, 0}
	for i := range want {
		if ratio := math.Log(got[i] / got[4]); math.Abs(ratio-want[i]) > 1e-6 {
			t.Errorf("token %d acts with logit %.3f, want %v", i, ratio, want[i])
		}
	}
	if logits[0] != 2 {
		t.Error("the caller's logits were changed")
	}
}

func TestErrors(t *testing.T) {
	nan := float32(math.NaN())
	for _, p := range []sample.Params{{}, {Temperature: 1}, {Temperature: 1, TopK: 2, TopP: .5}} {
		s := newSampler(t, p, 3)
		for _, tc := range []struct {
			logits []float32
			want   error
		}{
			{[]float32{-inf, -inf, -inf}, sample.ErrNoToken},
			{[]float32{1, nan, 2}, sample.ErrNotFinite},
			{[]float32{1, 2, inf}, sample.ErrNotFinite},
		} {
			if id, err := s.Sample(tc.logits); !errors.Is(err, tc.want) {
				t.Errorf("%+v over %v: id %d, %v", p, tc.logits, id, err)
			}
		}
		if _, err := s.Sample(make([]float32, 4)); err == nil {
			t.Error("a row longer than the vocabulary passed")
		}
	}
}

func TestParams(t *testing.T) {
	nan := float32(math.NaN())
	for name, p := range map[string]sample.Params{
		"temperature": {Temperature: -1}, "between 0 and 100": {Temperature: inf}, "temperature is NaN": {Temperature: nan},
		"top_p is 1.5, must be between 0 and 1": {TopP: 1.5}, "min_p": {MinP: -.1}, "repetition_penalty": {RepetitionPenalty: 11},
		"top_k is -1": {TopK: -1},
	} {
		if _, err := sample.New(p, 10); !errors.Is(err, sample.ErrParams) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := sample.New(sample.Params{}, 0); err == nil {
		t.Error("an empty vocabulary passed")
	}
}

// Draws follow the distribution: chi-square over 60,000 of them stays under
// the 99.9 % quantile for 7 degrees of freedom.
func TestDraws(t *testing.T) {
	logits := logs(.3, .2, .15, .12, .1, .06, .04, .03)
	s := newSampler(t, sample.Params{Temperature: 1, Seed: 42}, len(logits))
	want := dense(t, s, logits)
	const n, quantile = 60_000, 24.32
	counts := make([]float64, len(logits))
	for range n {
		id, err := s.Sample(logits)
		if err != nil {
			t.Fatal(err)
		}
		counts[id]++
	}
	chi := 0.0
	for i, c := range counts {
		e := want[i] * n
		chi += (c - e) * (c - e) / e
	}
	if chi > quantile {
		t.Errorf("chi-square %.1f > %.1f, counts %v", chi, quantile, counts)
	}
}

func TestSeed(t *testing.T) {
	logits := make([]float32, 1000)
	draw := func(seed uint64) []int32 {
		s := newSampler(t, sample.Params{Temperature: 1, Seed: seed}, len(logits))
		out := make([]int32, 20)
		for i := range out {
			out[i], _ = s.Sample(logits)
		}
		return out
	}
	if !slices.Equal(draw(7), draw(7)) {
		t.Error("one seed drew two sequences")
	}
	if slices.Equal(draw(7), draw(8)) {
		t.Error("two seeds drew one sequence")
	}
}

// evens allows even tokens, and remembers what was chosen.
type evens struct{ accepted []int32 }

func (e *evens) Mask(logits []float32) {
	for i := 1; i < len(logits); i += 2 {
		logits[i] = -inf
	}
}

func (e *evens) Accept(id int32) { e.accepted = append(e.accepted, id) }

func TestGrammar(t *testing.T) {
	g := &evens{}
	logits := []float32{0, 9, 1, 9}
	s := newSampler(t, sample.Params{Grammar: g}, 4)
	id, err := s.Sample(logits)
	if err != nil || id != 2 || logits[1] != 9 {
		t.Fatalf("id %d, %v, logits %v", id, err, logits)
	}
	s.Observe(3)
	s.Accept(id)
	if !slices.Equal(g.accepted, []int32{2}) {
		t.Errorf("the grammar was told %v", g.accepted)
	}
}

func TestSampleDoesNotAllocate(t *testing.T) {
	logits := spread(5000)
	for _, p := range []sample.Params{{}, {Temperature: 1}, {Temperature: .7, TopP: .9}, {Temperature: 1, TopK: 40, MinP: .05, RepetitionPenalty: 1.1}} {
		s := newSampler(t, p, len(logits))
		s.Accept(3)
		step := func() { _, _ = s.Sample(logits) }
		step()
		if n := testing.AllocsPerRun(20, step); n != 0 {
			t.Errorf("%+v: %v allocations a token", p, n)
		}
	}
}

// spread is a row of logits with the long tail that models have.
func spread(n int) []float32 {
	row := make([]float32, n)
	for i := range row {
		row[i] = 12 - 4*float32(math.Log1p(float64((i*7919)%n)))
	}
	return row
}

func BenchmarkSample(b *testing.B) {
	for _, bc := range []struct {
		name string
		p    sample.Params
	}{
		{"greedy", sample.Params{}},
		{"plain", sample.Params{Temperature: 1}},
		{"top-p", sample.Params{Temperature: .7, TopP: .9}},
		{"top-k40-top-p", sample.Params{Temperature: .7, TopK: 40, TopP: .9}},
	} {
		for _, vocab := range []int{49152, 262144} {
			b.Run(fmt.Sprintf("%s/%d", bc.name, vocab), func(b *testing.B) {
				logits := spread(vocab)
				s := newSampler(b, bc.p, vocab)
				for b.Loop() {
					if _, err := s.Sample(logits); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func ExampleSampler() {
	s, err := sample.New(sample.Params{Temperature: .7, TopK: 40, TopP: .9, RepetitionPenalty: 1.1, Seed: 1}, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := s.Sample([]float32{0, 0, 30, 0})
	s.Accept(id)
	fmt.Println(id, err)
	// Output: 2 <nil>
}
