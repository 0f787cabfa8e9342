package cpu

import (
	"math"

	"ragd/inference/model"
)

// EmbedTexts sets x to the norm of token, position and type embeddings.
func (b *Backend) EmbedTexts(x model.Tensor, e *model.TextEmbedding) {
	b.ops.embedTexts.x, b.ops.embedTexts.e = x.(*tensor), e
	b.hidden.resize(len(b.step.tokens), x.Width())
	b.eachRow(&b.ops.embedTexts, len(b.step.tokens))
}

type embedTextRows struct {
	x *tensor
	e *model.TextEmbedding
}

func (o *embedTextRows) row(b *Backend, r int) {
	x, other := o.x.row(r), b.hidden.row(r)
	o.e.Tokens.(*matrix).row(x, int(b.step.tokens[r]))
	if o.e.Types != nil {
		types := o.e.Types.(*matrix)
		// RoBERTa models have one type, which both texts of a pair share.
		types.row(other, min(int(b.step.types[r]), types.rows-1))
		b.set.Add(x, other)
	}
	o.e.Positions.(*matrix).row(other, int(b.step.positions[r]))
	b.set.Add(x, other)
	b.normalise(x, x, &o.e.Norm)
}

// packedKV is the keys and values of packed texts, laid out as in a cache in which
// every text begins a block.
type packedKV struct {
	cache  cache
	blocks []int32 // the numbers from 0
}

// take is the next blocks for n rows, after those of the other texts of the step.
func (p *packedKV) take(n int) []int32 {
	first := p.cache.shape.Blocks
	p.cache.shape.Blocks += ceil(n, model.BlockTokens)
	for i := len(p.blocks); i < p.cache.shape.Blocks; i++ {
		p.blocks = append(p.blocks, int32(i))
	}
	return p.blocks[first:p.cache.shape.Blocks]
}

// size makes room for one layer of heads.
func (p *packedKV) size(heads, dim int, wide bool) {
	s := &p.cache.shape
	s.KVHeads, s.HeadDim = heads, dim
	n, kv := s.Blocks*model.BlockTokens*heads*dim, &p.cache.kv
	if wide {
		kv.k32, kv.v32 = grow(kv.k32, n), grow(kv.v32, n)
		return
	}
	kv.k16, kv.v16 = grow(kv.k16, n), grow(kv.v16, n)
}

// AttendTexts sets dst to attention in which every row sees its whole text.
func (b *Backend) AttendTexts(dst, q, k, v model.Tensor, a model.Attention) {
	b.texts.size(a.KVHeads, a.HeadDim, b.float32)
	b.ops.pack = packRows{k.(*tensor), v.(*tensor)}
	b.eachRows(&b.ops.pack, len(b.step.tokens), appendChunk)
	t := &b.attention
	t.cache, t.layer, t.causal = &b.texts.cache, 0, false
	b.attend(dst.(*tensor), q.(*tensor), a)
}

// packRows puts keys and values where attention reads them.
type packRows struct{ k, v *tensor }

func (o *packRows) row(b *Backend, r int) {
	c, pos := &b.texts.cache, int(b.step.positions[r])
	block, dim := b.step.spans[b.step.spanOf[r]].blocks[pos/model.BlockTokens], c.shape.HeadDim
	k, v := o.k.row(r), o.v.row(r)
	for h := range c.shape.KVHeads {
		lo, hi := h*dim, (h+1)*dim
		c.kv.put(b.set, c.offset(0, block, h), pos%model.BlockTokens, k[lo:hi], v[lo:hi])
	}
}

// ResidualNorm is x = n(x + W·in + b).
func (b *Backend) ResidualNorm(x, in model.Tensor, w model.Linear, n model.Norm) {
	b.Residual(x, in, w, model.Norm{})
	b.ops.layerNorm = layerNormRows{x.(*tensor), n}
	b.eachRow(&b.ops.layerNorm, len(b.step.tokens))
}

// FeedForwardNorm applies a plain feed-forward layer with its residual and norm.
func (b *Backend) FeedForwardNorm(x model.Tensor, f *model.FFN) {
	rows := len(b.step.tokens)
	b.up.resize(rows, f.Up.W.Rows())
	b.one(product(f.Up, &b.up, nil))
	b.normedInput(x.(*tensor), model.Norm{}, nil)
	b.multiply()

	b.planAdded(x.(*tensor), f.Down, model.Norm{})
	b.input.prepare(rows, f.Up.W.Rows(), b.products.outs)
	b.eachRow(&b.ops.gelu, rows)
	b.multiply()
	b.ops.layerNorm = layerNormRows{x.(*tensor), f.Norm}
	b.eachRow(&b.ops.layerNorm, rows)
}

// Pool returns one vector a text.
func (b *Backend) Pool(x model.Tensor, p model.Pooling, unit bool) ([][]float32, error) {
	defer b.seat.end()
	t := x.(*tensor)
	b.openResults(len(b.step.spans), t.width)
	for i := range b.step.spans {
		s := &b.step.spans[i]
		dst := b.results[i]
		copy(dst, t.row(s.first))
		if p == model.PoolMean {
			for r := 1; r < s.rows; r++ {
				b.set.Add(dst, t.row(s.first+r))
			}
			b.set.Scale(dst, 1/float32(s.rows))
		}
		if unit {
			b.unit(dst)
		}
	}
	return b.results, nil
}

// unit scales a vector to length one; a zero vector stays zero.
func (b *Backend) unit(v []float32) {
	if square := b.set.Dot(v, v); square > 0 {
		b.set.Scale(v, float32(1/math.Sqrt(float64(square))))
	}
}

// openResults makes n result rows of the given width.
func (b *Backend) openResults(n, width int) {
	b.logits = grow(b.logits, n*width)
	b.results = b.results[:0]
	for i := range n {
		b.results = append(b.results, b.logits[i*width:(i+1)*width])
	}
}

// Classify applies a classification head to the first row of each text.
func (b *Backend) Classify(x model.Tensor, dense, out model.Linear) ([][]float32, error) {
	defer b.seat.end()
	t := x.(*tensor)
	first := b.step.logits[:0]
	for i := range b.step.spans {
		first = append(first, int32(b.step.spans[i].first))
	}
	b.step.logits = first
	if dense.W != nil {
		b.gate.resize(len(first), dense.W.Rows())
		b.one(product(dense, &b.gate, nil))
		b.normedInput(t, model.Norm{}, first)
		b.multiply()
		for i, v := range b.gate.data {
			b.gate.data[i] = tanh(v)
		}
		t, first = &b.gate, nil
	}
	return b.head(t, first, out), nil
}

// head multiplies some rows of x by the last matrix of a classifier.
func (b *Backend) head(x *tensor, index []int32, out model.Linear) [][]float32 {
	n := len(b.step.spans)
	b.openResults(n, out.W.Rows())
	b.one(output{w: out.W.(*matrix), bias: values(out.B), dst: b.logits, stride: out.W.Rows()})
	b.input.prepare(n, x.width, b.products.outs)
	b.ops.norm = normRows{x, model.Norm{}, index}
	b.eachRow(&b.ops.norm, n)
	b.multiply()
	return b.results
}
