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

// packedKV is the keys and values of packed texts in half precision.
type packedKV struct {
	kv   kv
	k, v []uint16
}

// AttendTexts sets dst to attention in which every row sees its whole text.
func (b *Backend) AttendTexts(dst, q, k, v model.Tensor, a model.Attention) {
	keys, vals := k.(*tensor), v.(*tensor)
	p := &b.texts
	if b.float32 {
		p.kv = kv{k32: keys.data, v32: vals.data, stride: keys.width}
	} else {
		p.k, p.v = grow(p.k, len(keys.data)), grow(p.v, len(vals.data))
		p.kv = kv{k16: p.k, v16: p.v, stride: keys.width}
		b.ops.half = halfRows{keys, vals}
		b.eachRow(&b.ops.half, len(b.step.tokens))
	}
	t := &b.attention
	t.cache, t.kv = nil, &p.kv
	b.attend(dst.(*tensor), q.(*tensor), a)
}

// halfRows narrows keys and values to half precision.
type halfRows struct{ k, v *tensor }

func (o *halfRows) row(b *Backend, r int) {
	b.texts.kv.put(b.set, r*o.k.width, o.k.row(r), o.v.row(r))
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
