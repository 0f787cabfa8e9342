package sample_test

import (
	"math"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"ragd/inference/sample"
)

// reference is the published definition with a full sort, in float64.
func reference(p sample.Params, logits []float32) []float64 {
	ids := make([]int, len(logits))
	for i := range ids {
		ids[i] = i
	}
	sort.SliceStable(ids, func(i, j int) bool { return logits[ids[i]] > logits[ids[j]] })
	probs := make([]float64, len(ids))
	for i, id := range ids {
		probs[i] = math.Exp(float64(logits[id]-logits[ids[0]]) / float64(p.Temperature))
	}
	if p.TopK > 0 && p.TopK < len(probs) {
		probs = probs[:p.TopK]
	}
	if p.TopP > 0 && p.TopP < 1 {
		goal, mass, n := float64(p.TopP)*total(probs), 0.0, 0
		for ; n < len(probs) && mass < goal*(1-1e-6); n++ {
			mass += probs[n]
		}
		probs = probs[:n]
	}
	for i, w := range probs {
		if w < float64(p.MinP)*probs[0] {
			probs = probs[:i]
			break
		}
	}
	out := make([]float64, len(logits))
	sum := total(probs)
	for i, w := range probs {
		out[ids[i]] = w / sum
	}
	return out
}

func total(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum
}

// Partial selection gives what sorting everything gives.
func TestDistributionAgainstFullSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few distinct values make ties likely.
		logits := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float32 {
			return float32(rapid.IntRange(-40, 40).Draw(t, "eighths")) / 8
		}), 1, 80).Draw(t, "logits")
		p := sample.Params{
			Temperature: rapid.SampledFrom([]float32{.01, .3, .7, 1, 1.7, 50}).Draw(t, "temperature"),
			TopK:        rapid.IntRange(0, 90).Draw(t, "top k"),
			TopP:        rapid.Float32Range(0, 1).Draw(t, "top p"),
			MinP:        rapid.SampledFrom([]float32{0, .01, .1, .37}).Draw(t, "min p"),
		}
		s, err := sample.New(p, len(logits))
		if err != nil {
			t.Fatal(err)
		}
		dist, err := s.Distribution(logits)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, len(logits))
		for _, c := range dist {
			got[c.ID] += c.P
		}
		want := reference(p, logits)
		for i := range want {
			if !(math.Abs(got[i]-want[i]) < 1e-9) {
				t.Fatalf("token %d: got %v, want %v", i, got[i], want[i])
			}
		}
		id, err := s.Sample(logits)
		if err != nil || want[id] == 0 {
			t.Fatalf("drew %d of probability 0, %v", id, err)
		}
	})
}

// Any bits for logits give a token that is not ruled out, or an error.
func FuzzSample(f *testing.F) {
	f.Add(float32(1), float32(.9), 3, float32(.1), float32(1.2), float32(2), float32(-1), float32(0))
	f.Add(float32(1e-4), float32(1), 0, float32(0), float32(0), float32(math.Inf(-1)), float32(math.MaxFloat32), float32(-math.MaxFloat32))
	f.Fuzz(func(t *testing.T, temperature, topP float32, topK int, minP, penalty, a, b, c float32) {
		p := sample.Params{Temperature: temperature, TopP: topP, TopK: topK, MinP: minP, RepetitionPenalty: penalty}
		s, err := sample.New(p, 3)
		if err != nil {
			return
		}
		s.Accept(1)
		logits := []float32{a, b, c}
		dist, err := s.Distribution(logits)
		if err != nil {
			return
		}
		sum := 0.0
		for _, c := range dist {
			sum += c.P
		}
		if !(math.Abs(sum-1) < 1e-9) {
			t.Fatalf("probabilities %v sum to %v", dist, sum)
		}
		if id, err := s.Sample(logits); err != nil || math.IsInf(float64(logits[id]), -1) {
			t.Fatalf("drew %d of %v, %v", id, logits, err)
		}
	})
}
