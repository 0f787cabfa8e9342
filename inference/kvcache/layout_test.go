package kvcache

import (
	"math"
	"testing"
)

func TestTokenBytes(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout Layout
		want   float64
	}{
		{"36 layers, 2048 wide, f16", Layout{Layers: 36, KVHeads: 16, HeadDim: 128, Bytes: 2}, 288 << 10},
		{"30 layers, 3 heads of 64, f16", Layout{Layers: 30, KVHeads: 3, HeadDim: 64, Bytes: 2}, 22.5 * 1024},
		{"the same, q8_0", Layout{Layers: 30, KVHeads: 3, HeadDim: 64, Bytes: 34.0 / 32}, 12240},
	} {
		if got := c.layout.TokenBytes(); got != c.want {
			t.Errorf("%s: %v bytes a token, want %v", c.name, got, c.want)
		}
	}
}

func TestMemoryOfSequences(t *testing.T) {
	l := Layout{Layers: 36, KVHeads: 16, HeadDim: 128, Bytes: 2}
	for tokens, wantMiB := range map[float64]float64{1_000: 281, 128_000: 36_000} {
		if got := math.Round(l.TokenBytes() * tokens / (1 << 20)); got != wantMiB {
			t.Errorf("%v tokens take %v MiB, want %v", tokens, got, wantMiB)
		}
	}
}

func TestBlocksFor(t *testing.T) {
	l := Layout{Layers: 36, KVHeads: 16, HeadDim: 128, Bytes: 2}
	if got, want := l.BlockBytes(), int64(16*288<<10); got != want {
		t.Fatalf("block of %d bytes, want %d", got, want)
	}
	for bytes, want := range map[int64]int{
		-1: 0, 0: 0, l.BlockBytes() - 1: 0, l.BlockBytes(): 1, 10*l.BlockBytes() + 1: 10,
	} {
		if got := l.BlocksFor(bytes); got != want {
			t.Errorf("BlocksFor(%d) = %d, want %d", bytes, got, want)
		}
	}
	if got := (Layout{}).BlocksFor(1 << 30); got != 0 {
		t.Errorf("a layout without layers holds %d blocks, want 0", got)
	}
}

func TestBlocksOf(t *testing.T) {
	for tokens, want := range map[int]int{0: 0, 1: 1, 16: 1, 17: 2, 1000: 63} {
		if got := BlocksOf(tokens); got != want {
			t.Errorf("BlocksOf(%d) = %d, want %d", tokens, got, want)
		}
	}
}
