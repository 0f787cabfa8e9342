package engine

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestExp(t *testing.T) {
	for x := float32(-80); x <= 80; x += 0.0137 {
		want := math.Exp(float64(x))
		if got := float64(exp(x)); math.Abs(got-want) > 1e-5*want {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if got := exp(1000); got != exp(80) {
		t.Errorf("exp(1000) = %v, want %v", got, exp(80))
	}
}

func TestLogProb(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []float64{0.1, 3, 15} {
		logits := make([]float32, 50_000)
		for i := range logits {
			logits[i] = float32(draw.NormFloat64() * spread)
		}
		top := float64(logits[0])
		for _, l := range logits {
			top = max(top, float64(l))
		}
		var sum float64
		for _, l := range logits {
			sum += math.Exp(float64(l) - top)
		}
		for id := int32(0); id < 100; id++ {
			want := float64(logits[id]) - top - math.Log(sum)
			if got := logProb(logits, id); want > -80 && math.Abs(got-want) > 6e-4 {
				t.Fatalf("spread %v: log probability %v, want %v", spread, got, want)
			}
		}
	}
	if got := logProb([]float32{-3, float32(math.Inf(-1))}, 0); got != 0 {
		t.Errorf("the only possible token has log probability %v, want 0", got)
	}
}

func TestConfidenceAdds(t *testing.T) {
	var c Confidence
	for _, l := range []float64{-1, -3, -2} {
		c.Add(l)
	}
	if c.Tokens != 3 || c.Min != -3 || math.Abs(c.Mean+2) > 1e-12 {
		t.Errorf("%+v, want mean -2 and minimum -3 of 3", c)
	}
}

// BenchmarkLogProb is on logits spread like a language model's.
func BenchmarkLogProb(b *testing.B) {
	draw := rand.New(rand.NewPCG(1, 2))
	logits := make([]float32, 49_152)
	for i := range logits {
		logits[i] = float32(draw.NormFloat64() * 3)
	}
	logits[7] = 22
	for b.Loop() {
		logProb(logits, 7)
	}
}
