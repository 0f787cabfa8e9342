package encode_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/encode"
)

// stateTexts are passages of both languages, a long one among them, so that batches
// are of several texts.
var stateTexts = []string{
	"The dock gate opens at six.", "서울의 겨울은 춥고 건조하지만 봄은 짧고 따뜻하다.", "x",
	strings.Repeat("A block of sixteen tokens holds the keys and values of every layer. ", 8),
}

func passageStates(t *testing.T, e *encode.Encoder, limit int) []encode.Embedding {
	t.Helper()
	out, err := e.EmbedPassageStates(context.Background(), stateTexts, []bool{true, true, false, true}, limit)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The vectors that come with states are those that come without, to the bit.
func TestStatesLeaveVectors(t *testing.T) {
	e := open(t, "multilingual-e5-small", cpu.Config{}, encode.Config{})
	want, err := e.EmbedPassages(context.Background(), stateTexts)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range passageStates(t, e, 1000) {
		if !slices.Equal(v.Vector, want[i].Vector) || v.Tokens != want[i].Tokens {
			t.Errorf("text %d: another vector, %d tokens of %d", i, v.Tokens, want[i].Tokens)
		}
		if (v.States != nil) != (i != 2) {
			t.Errorf("text %d: states %v", i, v.States != nil)
		}
		// Two special tokens and two of the prefix are no content.
		if v.States != nil && (len(v.States.Scales) != v.Tokens-4 || len(v.States.Values) != e.Dim()*(v.Tokens-4)) {
			t.Errorf("text %d: %d states of %d tokens", i, len(v.States.Scales), v.Tokens)
		}
	}
	q, _, err := e.EmbedQuery(context.Background(), stateTexts[1])
	if err != nil {
		t.Fatal(err)
	}
	v, s, n, err := e.EmbedQueryStates(context.Background(), stateTexts[1])
	if err != nil || !slices.Equal(v, q) || len(s.Weights) != n-5 || len(s.Rows) != e.Dim()*(n-5) {
		t.Errorf("query: %d weights, %d values of %d tokens, %v", len(s.Weights), len(s.Rows), n, err)
	}
	if most, least := slices.Max(s.Weights), slices.Min(s.Weights); least <= 0 || most < 2*least {
		t.Errorf("weights from %g to %g", least, most)
	}
}

// What the path in use and the rounding to int8 cost against the float32 path.
func TestStatesAgainstFloat32(t *testing.T) {
	const leastRounded, leastMean = 0.9995, 0.9998
	exact := open(t, "multilingual-e5-small", cpu.Config{Float32: true}, encode.Config{})
	used := passageStates(t, open(t, "multilingual-e5-small", cpu.Config{}, encode.Config{}), 1000)
	worst, sum, n := 1.0, 0.0, 0
	for i, want := range passageStates(t, exact, 1000) {
		if want.States == nil {
			continue
		}
		for r := range want.States.Scales {
			a, b := state(want.States, r, exact.Dim()), state(used[i].States, r, exact.Dim())
			if length := math.Sqrt(dot(a, a)); math.Abs(length-1) > 0.005 {
				t.Errorf("text %d, token %d: length %g", i, r, length)
			}
			cos := cosine(a, b)
			worst, sum, n = min(worst, cos), sum+cos, n+1
		}
	}
	if mean := sum / float64(n); worst < leastRounded || mean < leastMean {
		t.Errorf("cosine %.6f, the least %.6f", mean, worst)
	}
	t.Logf("%d states, cosine %.6f, the least %.6f", n, sum/float64(n), worst)
}

func state(s *encode.States, r, dim int) []float32 {
	out := make([]float32, dim)
	for i, v := range s.Values[r*dim : (r+1)*dim] {
		out[i] = float32(v) * s.Scales[r]
	}
	return out
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// A limit keeps the rarest tokens, in the order of the text.
func TestStatesLimit(t *testing.T) {
	e := open(t, "multilingual-e5-small", cpu.Config{}, encode.Config{})
	all, few := passageStates(t, e, 1000)[0].States, passageStates(t, e, 3)[0].States
	if len(few.Scales) != 3 || len(few.Values) != 3*e.Dim() {
		t.Fatalf("%d states", len(few.Scales))
	}
	var at []int
	for r := range few.Scales {
		at = append(at, slices.IndexFunc(all.Scales, func(s float32) bool { return s == few.Scales[r] }))
	}
	// The | dock | gate | opens | at | six | . : the common ones at the ends are left out.
	if !slices.IsSorted(at) || at[0] < 1 || slices.Contains(at, len(all.Scales)-1) {
		t.Errorf("kept the tokens at %v of %d", at, len(all.Scales))
	}
}
