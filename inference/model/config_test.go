package model

import (
	"math"
	"testing"
)

func TestKVBytesPerToken(t *testing.T) {
	large := Config{Layers: 36, KVHeads: 16, HeadDim: 128}
	small := Config{Layers: 30, KVHeads: 3, HeadDim: 64}
	for _, c := range []struct {
		config Config
		bytes  float64 // of an element
		want   float64
	}{
		{large, 2, 288 << 10},
		{small, 2, 22.5 * 1024},
		{small, 34.0 / 32, 12240},
	} {
		if got := c.config.KVBytesPerToken(c.bytes); got != c.want {
			t.Errorf("%+v at %v: %v bytes a token, want %v", c.config, c.bytes, got, c.want)
		}
	}
	for tokens, wantMiB := range map[float64]float64{1_000: 281, 128_000: 36_000} {
		if got := math.Round(large.KVBytesPerToken(2) * tokens / (1 << 20)); got != wantMiB {
			t.Errorf("%v tokens take %v MiB, want %v", tokens, got, wantMiB)
		}
	}
}
