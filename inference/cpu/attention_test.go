package cpu

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// Attention over a paged cache against the plain softmax in float64: grouped heads,
// windows, caps, pieces that continue a sequence, blocks in any order.
func TestAttend(t *testing.T) {
	for _, set := range kernel.Sets() {
		for _, exact := range []bool{true, false} {
			for _, a := range []model.Attention{
				{Heads: 4, KVHeads: 4, HeadDim: 16},
				{Heads: 6, KVHeads: 2, HeadDim: 8, Window: 21},
				{Heads: 6, KVHeads: 2, HeadDim: 8, Window: 300},
				{Heads: 9, KVHeads: 1, HeadDim: 32, SoftCap: 3},
				{Heads: 60, KVHeads: 1, HeadDim: 4, Window: 1},
			} {
				a.Scale = 0.3
				t.Run(fmt.Sprintf("%s/%v/%+v", set.Name, exact, a), func(t *testing.T) {
					checkAttend(t, newBackend(t, Config{Threads: 3, Kernels: set, Float32: exact}), a)
				})
			}
		}
	}
}

// A cache in q8_0 gives attention over exactly what quant.Encode, ggml's rounding,
// makes of keys and values.
func TestAttendQ8(t *testing.T) {
	for _, set := range kernel.Sets() {
		for _, a := range []model.Attention{
			{Heads: 4, KVHeads: 4, HeadDim: 64},
			{Heads: 6, KVHeads: 2, HeadDim: 32, Window: 21},
			{Heads: 6, KVHeads: 2, HeadDim: 32, Window: 300},
			{Heads: 3, KVHeads: 1, HeadDim: 96, SoftCap: 3},
			{Heads: 60, KVHeads: 1, HeadDim: 32, Window: 1},
		} {
			a.Scale = 0.3
			t.Run(fmt.Sprintf("%s/%+v", set.Name, a), func(t *testing.T) {
				checkAttend(t, newBackend(t, Config{Threads: 3, Kernels: set, CacheType: quant.Q8_0}), a)
			})
		}
	}
}

// encoded is what is left of x in a type.
func encoded(t *testing.T, typ quant.Type, x []float32) []float32 {
	t.Helper()
	size, err := typ.RowBytes(len(x))
	if err != nil {
		t.Fatal(err)
	}
	stored, y := make([]byte, size), make([]float32, len(x))
	if err := errors.Join(quant.Encode(typ, stored, x), quant.Decode(typ, y, stored)); err != nil {
		t.Fatal(err)
	}
	return y
}

// Heads that are no whole number of blocks have no q8_0 cache, and there are no caches
// of other types.
func TestCacheTypesRefused(t *testing.T) {
	b := newBackend(t, Config{CacheType: quant.Q8_0})
	if _, err := b.NewCache(model.CacheShape{Layers: 1, Blocks: 1, KVHeads: 2, HeadDim: 80}); !errors.Is(err, ErrLoad) || !strings.Contains(err.Error(), "80") {
		t.Errorf("heads of 80: %v", err)
	}
	if _, err := New(Config{CacheType: quant.Q4_0}); !errors.Is(err, ErrLoad) || !strings.Contains(err.Error(), "Q4_0") {
		t.Errorf("a cache in Q4_0: %v", err)
	}
	if _, err := New(Config{CacheType: quant.FP8}); !errors.Is(err, ErrLoad) || !strings.Contains(err.Error(), "for devices") {
		t.Errorf("a cache in FP8: %v", err)
	}
}

// The memory of a cache is that of its values by the formula.
func TestCacheBytes(t *testing.T) {
	for typ, want := range map[quant.Type]int64{quant.F16: 2 * 32, quant.Q8_0: 34} {
		b := newBackend(t, Config{CacheType: typ})
		c, err := b.NewCache(model.CacheShape{Layers: 3, Blocks: 5, KVHeads: 2, HeadDim: 64})
		if err != nil {
			t.Fatal(err)
		}
		if want *= 2 * 3 * 5 * model.BlockTokens * 2 * 64 / 32; c.Bytes() != want {
			t.Errorf("%s: %d bytes, want %d", typ, c.Bytes(), want)
		}
	}
}

// checkAttend appends and attends a sequence in pieces, layer 1 of 2. Single
// positions past the first section are attended in sections apart.
func checkAttend(t *testing.T, b *Backend, a model.Attention) {
	const total, layer = 561, 1
	r := rand.New(rand.NewPCG(5, 6))
	c, err := b.NewCache(model.CacheShape{Layers: 2, Blocks: 40, KVHeads: a.KVHeads, HeadDim: a.HeadDim})
	if err != nil {
		t.Fatal(err)
	}
	still, err := b.NewRope(make([]float64, a.HeadDim/2), model.Halves) // frequency 0 turns nothing
	if err != nil {
		t.Fatal(err)
	}
	wide, narrow := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim
	q, k, v := random(r, total*wide), random(r, total*narrow), random(r, total*narrow)
	blocks := make([]int32, 36)
	for i := range blocks {
		blocks[i] = int32(i*7+3) % 40
	}
	at := 0
	for _, n := range []int{1, 40, 30, 487, 1, 2} {
		b.Begin(model.Batch{{Tokens: make([]int32, n), Start: at, Blocks: blocks}})
		qt := b.filled(t, wide, q[at*wide:(at+n)*wide])
		dst := b.filled(t, wide, nil)
		b.Append(c, layer, qt, b.filled(t, narrow, k[at*narrow:(at+n)*narrow]), b.filled(t, narrow, v[at*narrow:(at+n)*narrow]), model.Rotation{Rope: still})
		b.Attend(dst, qt, c, layer, a)
		k, v := k, v
		if b.cacheType == quant.Q8_0 {
			k, v = encoded(t, quant.Q8_0, k), encoded(t, quant.Q8_0, v)
		}
		for i := range n {
			if i%13 != 0 && i != n-1 {
				continue
			}
			first := 0
			if a.Window > 0 {
				first = max(0, at+i+1-a.Window)
			}
			compareRow(t, b, a, dst.row(i), q[(at+i)*wide:], k, v, first, at+i+1)
		}
		at += n
	}
}

// compareRow holds one row of every head to the plain formula over positions
// [from,to).
func compareRow(t *testing.T, b *Backend, a model.Attention, got, q, k, v []float32, from, to int) {
	t.Helper()
	bound := 2e-3
	if b.float32 || b.cacheType == quant.Q8_0 {
		bound = 1e-5
	}
	narrow := a.KVHeads * a.HeadDim
	for h := range a.Heads {
		kv := h / (a.Heads / a.KVHeads) * a.HeadDim
		want := make([]float64, a.HeadDim)
		sum := 0.0
		for p := from; p < to; p++ {
			s := 0.0
			for d := range a.HeadDim {
				s += float64(q[h*a.HeadDim+d]) * float64(k[p*narrow+kv+d])
			}
			s *= float64(a.Scale)
			if a.SoftCap > 0 {
				s = float64(a.SoftCap) * math.Tanh(s/float64(a.SoftCap))
			}
			sum += math.Exp(s)
			for d := range want {
				want[d] += math.Exp(s) * float64(v[p*narrow+kv+d])
			}
		}
		for d := range want {
			if diff := math.Abs(float64(got[h*a.HeadDim+d]) - want[d]/sum); !(diff <= bound) {
				t.Fatalf("positions %d to %d, head %d, value %d: off by %g", from, to-1, h, d, diff)
			}
		}
	}
}

// Packed texts see themselves and nothing else.
func TestAttendTexts(t *testing.T) {
	a := model.Attention{Heads: 3, KVHeads: 3, HeadDim: 8, Scale: 0.4}
	for _, exact := range []bool{true, false} {
		b := newBackend(t, Config{Threads: 2, Float32: exact})
		r := rand.New(rand.NewPCG(7, 8))
		lengths := []int{1, 16, 400, 17}
		texts := make([]model.Text, len(lengths))
		total := 0
		for i, n := range lengths {
			texts[i].Tokens = make([]int32, n)
			total += n
		}
		b.BeginTexts(texts)
		q, k, v := random(r, total*24), random(r, total*24), random(r, total*24)
		dst := b.filled(t, 24, nil)
		b.AttendTexts(dst, b.filled(t, 24, q), b.filled(t, 24, k), b.filled(t, 24, v), a)
		first := 0
		for _, n := range lengths {
			for i := range n {
				compareRow(t, b, a, dst.row(first+i), q[(first+i)*24:], k[first*24:], v[first*24:], 0, n)
			}
			first += n
		}
	}
}
