//go:build cuda && cgo

package cuda

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ragd/inference/cpu/kernel"
	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// attentionCase is a shape of attention over one layer of a cache.
type attentionCase struct {
	heads, kvheads, dim, turned int
	window                      int
	softCap                     float32
	order                       model.PairOrder
	norms                       bool
	cache                       quant.Type
	tensor                      bool    // on tensor cores
	size                        float32 // of the queries' values; 0: 1
}

func (c attentionCase) String() string {
	return fmt.Sprintf("%s, %d/%d heads of %d, %d turned, window %d, cap %g, order %d, norms %v, tensor cores %v, size %g",
		c.cache, c.heads, c.kvheads, c.dim, c.turned, c.window, c.softCap, c.order, c.norms, c.tensor, c.size)
}

var attentionCases = []attentionCase{
	{heads: 9, kvheads: 3, dim: 64, turned: 64, cache: quant.F16},
	{heads: 4, kvheads: 1, dim: 16, turned: 8, window: 40, order: model.Halves, norms: true, cache: quant.F16},
	{heads: 2, kvheads: 1, dim: 100, turned: 100, softCap: 2, order: model.Halves, cache: quant.F16},
	{heads: 6, kvheads: 1, dim: 256, turned: 256, window: 300, cache: quant.F16},
	{heads: 4, kvheads: 2, dim: 96, turned: 64, window: 40, order: model.Halves, norms: true, cache: quant.Q8_0},
	{heads: 4, kvheads: 2, dim: 96, turned: 64, window: 40, order: model.Halves, cache: quant.FP8},
	{heads: 9, kvheads: 3, dim: 64, turned: 64, cache: quant.F16, tensor: true},
	{heads: 2, kvheads: 1, dim: 128, turned: 128, softCap: 2, cache: quant.F16, tensor: true, size: 1 << 20},
	{heads: 6, kvheads: 1, dim: 256, turned: 256, window: 300, cache: quant.F16, tensor: true},
	{heads: 9, kvheads: 3, dim: 64, turned: 64, cache: quant.Q8_0, tensor: true},
	{heads: 2, kvheads: 1, dim: 256, turned: 256, softCap: 3, cache: quant.Q8_0, tensor: true},
	{heads: 4, kvheads: 2, dim: 128, turned: 64, window: 40, order: model.Halves, cache: quant.FP8, tensor: true},
}

// sequence is the inputs of one layer for some positions, and what attention over
// them is by definition.
type sequence struct {
	q, k, v, want []float32
}

const positions = 290 // more than a section

// reference computes everything in float64 but for the keys and values, which are
// rounded as the cache does.
func (c attentionCase) reference(rng *rand.Rand, freqs []float64, qgain, kgain []float32) sequence {
	s := sequence{q: random(rng, positions*c.heads*c.dim), k: random(rng, positions*c.kvheads*c.dim), v: random(rng, positions*c.kvheads*c.dim)}
	for i := range s.q {
		s.q[i] *= max(c.size, 1)
	}
	q, k := slices.Clone(s.q), slices.Clone(s.k)
	for p := range positions {
		for h := range c.heads {
			c.prepare(q[(p*c.heads+h)*c.dim:][:c.dim], p, freqs, qgain)
		}
		for h := range c.kvheads {
			c.prepare(k[(p*c.kvheads+h)*c.dim:][:c.dim], p, freqs, kgain)
		}
	}
	k, v := rounded(c.cache, k), rounded(c.cache, s.v)
	s.want = make([]float32, len(q))
	for p := range positions {
		for h := range c.heads {
			at := (p*c.heads + h) * c.dim
			c.attendRow(s.want[at:at+c.dim], q[at:at+c.dim], k, v, p, h/(c.heads/c.kvheads))
		}
	}
	return s
}

func (c attentionCase) prepare(head []float32, p int, freqs []float64, gain []float32) {
	set := kernel.Portable()
	if c.norms {
		set.RMSNorm(head, head, gain, 1e-6)
	}
	cos, sin := make([]float32, len(freqs)), make([]float32, len(freqs))
	for i, f := range freqs {
		s, o := math.Sincos(float64(p) * f)
		cos[i], sin[i] = float32(o), float32(s)
	}
	if c.order == model.Halves {
		set.RopeHalves(head[:c.turned], cos, sin)
	} else {
		set.RopePairs(head[:c.turned], cos, sin)
	}
}

// rounded is what is left of values that were stored as typ.
func rounded(typ quant.Type, v []float32) []float32 {
	size, err := typ.RowBytes(len(v))
	if err != nil {
		panic(err)
	}
	data, out := make([]byte, size), make([]float32, len(v))
	if err := errors.Join(quant.Encode(typ, data, v), quant.Decode(typ, out, data)); err != nil {
		panic(err)
	}
	return out
}

func (c attentionCase) scale() float32 {
	return float32(1/math.Sqrt(float64(c.dim))) / max(c.size, 1)
}

func (c attentionCase) attendRow(dst, q, k, v []float32, p, head int) {
	from := 0
	if c.window > 0 {
		from = max(0, p-c.window+1)
	}
	sum, acc := 0.0, make([]float64, c.dim)
	for j := from; j <= p; j++ {
		at := (j*c.kvheads + head) * c.dim
		score := 0.0
		for e := range q {
			score += float64(q[e]) * float64(k[at+e])
		}
		score *= float64(c.scale())
		if c.softCap > 0 {
			score = float64(c.softCap) * math.Tanh(score/float64(c.softCap))
		}
		w := math.Exp(score)
		sum += w
		for e := range acc {
			acc[e] += w * float64(v[at+e])
		}
	}
	for e := range dst {
		dst[e] = float32(acc[e] / sum)
	}
}

// layer is a backend with one layer's cache and tensors.
type layer struct {
	b             *Backend
	c             attentionCase
	cache         model.Cache
	q, k, v, out  *tensor
	rotation      model.Rotation
	table, second []int32
}

func newLayer(t *testing.T, c attentionCase, freqs []float64, qgain, kgain []float32) *layer {
	t.Helper()
	if c.tensor {
		onTensorCores(t)
	}
	b := newBackend(t)
	b.cacheType = c.cache
	blocks := ceil(positions, model.BlockTokens)
	cache, err := b.NewCache(model.CacheShape{Layers: 2, Blocks: 2*blocks + 1, KVHeads: c.kvheads, HeadDim: c.dim})
	if err != nil {
		t.Fatal(err)
	}
	l := &layer{
		b: b, c: c, cache: cache,
		q: newTensor(t, b, c.heads*c.dim), k: newTensor(t, b, c.kvheads*c.dim), v: newTensor(t, b, c.kvheads*c.dim), out: newTensor(t, b, c.heads*c.dim),
	}
	r, err := b.NewRope(freqs, c.order)
	if err != nil {
		t.Fatal(err)
	}
	l.rotation.Rope = r
	if c.norms {
		l.rotation.QNorm = model.Norm{Gain: loadVector(t, b, qgain), Eps: 1e-6}
		l.rotation.KNorm = model.Norm{Gain: loadVector(t, b, kgain), Eps: 1e-6}
	}
	for i := range blocks { // two sequences whose blocks alternate, backwards
		l.table = append(l.table, int32(2*(blocks-i)))
		l.second = append(l.second, int32(2*(blocks-i)-1))
	}
	return l
}

// piece is some positions of a sequence.
type piece struct {
	s        *sequence
	table    []int32
	from, to int
}

// run appends and attends pieces of sequences in one step and returns the outputs.
func (l *layer) run(t *testing.T, pieces ...piece) []float32 {
	t.Helper()
	var batch model.Batch
	var q, k, v []float32
	wq, wk := l.q.width, l.k.width
	for _, p := range pieces {
		batch = append(batch, model.Piece{Tokens: make([]int32, p.to-p.from), Start: p.from, Blocks: p.table})
		q = append(q, p.s.q[p.from*wq:p.to*wq]...)
		k = append(k, p.s.k[p.from*wk:p.to*wk]...)
		v = append(v, p.s.v[p.from*wk:p.to*wk]...)
	}
	l.b.Begin(batch)
	put(t, l.b, l.q.buf.ptr, q)
	put(t, l.b, l.k.buf.ptr, k)
	put(t, l.b, l.v.buf.ptr, v)
	l.b.Append(l.cache, 1, l.q, l.k, l.v, l.rotation)
	l.b.Attend(l.out, l.q, l.cache, 1, model.Attention{
		Heads: l.c.heads, KVHeads: l.c.kvheads, HeadDim: l.c.dim, Scale: l.c.scale(), Window: l.c.window, SoftCap: l.c.softCap,
	})
	return get(t, l.b, l.out.buf.ptr, len(q))
}

func TestAttentionMatchesDefinition(t *testing.T) {
	for _, c := range attentionCases {
		t.Run(c.String(), func(t *testing.T) {
			inBothOrders(t, func(t *testing.T) { c.check(t) })
		})
	}
}

// check runs one sequence whole, and again in pieces beside another one, with and
// without a split: right, and the same bits.
func (c attentionCase) check(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	freqs := make([]float64, c.turned/2)
	for i := range freqs {
		freqs[i] = math.Pow(10000, -2*float64(i)/float64(c.turned))
	}
	qgain, kgain := random(rng, c.dim), random(rng, c.dim)
	s, other := c.reference(rng, freqs, qgain, kgain), c.reference(rng, freqs, qgain, kgain)
	l := newLayer(t, c, freqs, qgain, kgain)
	l.b.splitBelow = 0
	whole := l.run(t, piece{&s, l.table, 0, positions})
	tolerance := 3e-5
	if c.tensor {
		tolerance = 1e-3 // queries, weights and decoded codes are halves
	}
	if c.cache == quant.Q8_0 && c.norms {
		// Norms end in other last bits than the host's, after which a code of a key rounds
		// the other way now and then. TestAppendQ8Exactly has those bits.
		tolerance = 2e-3
	}
	if d := worst(whole, s.want); d > tolerance {
		t.Errorf("off by %g", d)
	}
	width := l.q.width
	for _, split := range []int{0, 1 << 20} {
		l.b.splitBelow = split
		at := 0
		for _, to := range []int{37, 38, 272, positions - 1, positions} {
			got := l.run(t, piece{&other, l.second, at, to}, piece{&s, l.table, at, to})
			if !slices.Equal(got[(to-at)*width:], whole[at*width:to*width]) {
				t.Errorf("split below %d: positions %d to %d differ from the whole's", split, at, to)
			}
			if d := worst(got[:(to-at)*width], other.want[at*width:to*width]); d > tolerance {
				t.Errorf("the other sequence is off by %g", d)
			}
			at = to
		}
	}
}

// Texts see all of themselves and nothing of their neighbours.
func TestTextAttentionMatchesDefinition(t *testing.T) {
	t.Run("plain", func(t *testing.T) { textAttention(t, 3e-5) })
	t.Run("tensor cores", func(t *testing.T) {
		onTensorCores(t)
		textAttention(t, 1e-3)
	})
}

func textAttention(t *testing.T, tolerance float64) {
	b := newBackend(t)
	rng := rand.New(rand.NewPCG(17, 18))
	const heads, dim = 3, 32
	width := heads * dim
	q, k, v, out := newTensor(t, b, width), newTensor(t, b, width), newTensor(t, b, width), newTensor(t, b, width)
	lengths := []int{1, 17, 300}
	var texts []model.Text
	for _, n := range lengths {
		texts = append(texts, model.Text{Tokens: make([]int32, n)})
	}
	rows := 318
	qs, ks, vs := random(rng, rows*width), random(rng, rows*width), random(rng, rows*width)
	b.BeginTexts(texts)
	put(t, b, q.buf.ptr, qs)
	put(t, b, k.buf.ptr, ks)
	put(t, b, v.buf.ptr, vs)
	c := attentionCase{heads: heads, kvheads: heads, dim: dim}
	b.AttendTexts(out, q, k, v, model.Attention{Heads: heads, KVHeads: heads, HeadDim: dim, Scale: c.scale()})
	got := get(t, b, out.buf.ptr, rows*width)
	ks, vs = rounded(quant.F16, ks), rounded(quant.F16, vs)
	want := make([]float32, rows*width)
	first := 0
	for _, n := range lengths {
		for r := range n {
			for h := range heads {
				at := (first+r)*width + h*dim
				c.attendRow(want[at:at+dim], qs[at:at+dim], ks[first*width:], vs[first*width:], n-1, h)
			}
		}
		first += n
	}
	if d := worst(got, want); d > tolerance {
		t.Errorf("off by %g", d)
	}
}

// What computes attention depends on the device and on the size of the heads, and on
// nothing that differs between steps.
func TestAttentionIsChosenByTheModel(t *testing.T) {
	plain := newBackend(t)
	onTensorCores(t)
	tensor := newBackend(t)
	for dim, want := range map[int]string{64: "attend_f16_64x64", 100: ""} {
		if got := tensor.tensorAttention(textCache, dim); got != want {
			t.Errorf("heads of %d: %q", dim, got)
		}
		if got := plain.tensorAttention(textCache, dim); got != "" {
			t.Errorf("heads of %d without tensor cores: %q", dim, got)
		}
	}
}

func TestCacheRefusesHeads(t *testing.T) {
	b := newBackend(t)
	b.cacheType = quant.Q8_0
	if _, err := b.NewCache(model.CacheShape{Layers: 1, Blocks: 1, KVHeads: 1, HeadDim: 80}); err == nil {
		t.Error("no error for heads of 80 in blocks of 32")
	}
	b.cacheType = quant.F16
	for _, s := range []model.CacheShape{{Layers: 1, Blocks: 1, KVHeads: 1, HeadDim: 258}, {Layers: 0, Blocks: 1, KVHeads: 1, HeadDim: 64}, {Layers: 1 << 20, Blocks: 1 << 20, KVHeads: 1 << 10, HeadDim: 64}} {
		if _, err := b.NewCache(s); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
}

// What a q8_0 or fp8 cache holds of keys, as rotated, and of values has the bits of
// quant.Encode, also for a block of zeros, for one whose largest value lies above the
// last fp8 code of its exponent, and for values of all magnitudes.
func TestAppendExactly(t *testing.T) {
	for _, typ := range []quant.Type{quant.Q8_0, quant.FP8} {
		t.Run(typ.String(), func(t *testing.T) {
			inBothOrders(t, func(t *testing.T) { appendExactly(t, typ) })
		})
	}
}

func appendExactly(t *testing.T, typ quant.Type) {
	const rows, kvheads, dim = 18, 3, 96
	b := newBackend(t)
	b.cacheType = typ
	c, err := b.NewCache(model.CacheShape{Layers: 2, Blocks: 3, KVHeads: kvheads, HeadDim: dim})
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.NewRope([]float64{1, 0.1, 0.01}, model.Halves)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(23, 24))
	q, k, v := newTensor(t, b, dim), newTensor(t, b, kvheads*dim), newTensor(t, b, kvheads*dim)
	values := random(rng, rows*kvheads*dim)
	clear(values[:32])
	values[40] = 7.9
	for i := range values[64:96] {
		values[64+i] *= float32(math.Ldexp(1, -i))
	}
	b.Begin(model.Batch{{Tokens: make([]int32, rows), Blocks: []int32{2, 0}}})
	put(t, b, q.buf.ptr, random(rng, rows*dim))
	put(t, b, k.buf.ptr, random(rng, rows*kvheads*dim))
	put(t, b, v.buf.ptr, values)
	b.Append(c, 1, q, k, v, model.Rotation{Rope: r})
	keys := get(t, b, k.buf.ptr, rows*kvheads*dim)
	planes := c.(*cache).layer(1)
	for i, want := range [][]float32{keys, values} {
		checkCodes(t, b, typ, planes[2*i], planes[2*i+1], want, kvheads, dim)
	}
	if c.Bytes() != int64(2*3*16*kvheads*dim*2*typ.BlockBytes()/32) {
		t.Errorf("the cache has %d bytes", c.Bytes())
	}
}

// checkCodes compares what the cache's blocks 2 and 0 hold. A block of quant.Encode is
// codes and a scale, in q8_0 the scale first.
func checkCodes(t *testing.T, b *Backend, typ quant.Type, codesAt, scalesAt cudrv.Ptr, want []float32, kvheads, dim int) {
	t.Helper()
	size := typ.BlockBytes() - 32 // of a scale
	all := codes(t, b, codesAt, 3*16*kvheads*dim)
	scales := make([]byte, 3*16*kvheads*dim/32*size)
	if err := b.device.Do(func() error { return cudrv.Download(scales, scalesAt) }); err != nil {
		t.Fatal(err)
	}
	block := make([]byte, typ.BlockBytes())
	for i := 0; i < len(want); i += 32 {
		if err := quant.Encode(typ, block, want[i:i+32]); err != nil {
			t.Fatal(err)
		}
		scale, code := block[:size], block[size:]
		if typ == quant.FP8 {
			code, scale = block[:32], block[32:]
		}
		position, head, part := i/(kvheads*dim), i/dim%kvheads, i%dim
		row := ([]int{2, 0}[position/16]*kvheads+head)*16 + position%16
		at := row*dim + part
		for j, c := range all[at : at+32] {
			if c != int8(code[j]) {
				t.Fatalf("position %d, head %d, value %d: code %d, want %d", position, head, part+j, c, int8(code[j]))
			}
		}
		if at /= 32; !slices.Equal(scales[size*at:size*(at+1)], scale) {
			t.Fatalf("position %d, head %d, value %d: another scale", position, head, part)
		}
	}
}
