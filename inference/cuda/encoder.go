//go:build cuda && cgo

package cuda

import (
	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

// EmbedTexts sets x to the norm of token, position and type embeddings.
func (b *Backend) EmbedTexts(x model.Tensor, e *model.TextEmbedding) {
	t, s := x.(*tensor), &b.step
	b.embed(t, e.Tokens, s.dev.tokens, 1, 0)
	if e.Types != nil {
		// RoBERTa models have one type, which both texts of a pair share.
		for i := range s.types {
			s.types[i] = min(s.types[i], int32(e.Types.Rows()-1))
		}
		b.embed(t, e.Types, stage(b, s.types), 1, 1)
	}
	b.embed(t, e.Positions, s.dev.positions, 1, 1)
	b.normInPlace(t.buf.ptr, t.width, e.Norm)
}

// AttendTexts sets dst to attention in which every row sees its whole text. Keys and
// values go, in half precision, through a cache of the step's own.
func (b *Backend) AttendTexts(dst, q, k, v model.Tensor, a model.Attention) {
	size := int64(len(b.step.tables)) * model.BlockTokens * int64(a.KVHeads) * int64(a.HeadDim) * 2
	keys := b.reserve(&b.textKV, 2*size)
	planes := []cudrv.Ptr{keys, keys + cudrv.Ptr(size)}
	b.launch(b.kernels["append_"+textCache.name], cudrv.Grid{X: b.step.rows, Y: a.KVHeads, Z: 1, Threads: 32}).
		ptrs(0, k.(*tensor).buf.ptr, v.(*tensor).buf.ptr).ptrs(planes...).ptrs(0, 0, b.step.dev.slots, 0, 0).
		floats(0, 0).ints(0, a.KVHeads, a.HeadDim, 0, 0)
	b.attend(dst.(*tensor), q.(*tensor), textCache, planes, a)
}

// ResidualNorm is x = n(x + W·in + b).
func (b *Backend) ResidualNorm(x, in model.Tensor, w model.Linear, n model.Norm) {
	b.Residual(x, in, w, model.Norm{})
	b.normInPlace(x.(*tensor).buf.ptr, x.Width(), n)
}

// FeedForwardNorm applies a plain feed-forward layer with its residual and norm.
func (b *Backend) FeedForwardNorm(x model.Tensor, f *model.FFN) {
	t, rows, wide := x.(*tensor), b.step.rows, f.Up.W.Rows()
	up := b.resize(&b.up, rows, wide)
	b.prepare(rows, t.width, f.Up.W.(*matrix))
	b.normalise(t.buf.ptr, model.Norm{}, 0)
	b.multiply(f.Up, up, 0)

	b.prepare(rows, wide, f.Down.W.(*matrix))
	b.activate(actGELU, up, 0)
	b.multiply(f.Down, 0, t.buf.ptr)
	b.normInPlace(t.buf.ptr, t.width, f.Norm)
}

// Pool returns one vector a text.
func (b *Backend) Pool(x model.Tensor, p model.Pooling, unit bool) ([][]float32, error) {
	t, texts := x.(*tensor), len(b.step.spans)/4
	mean, scaled := 0, 0
	if p == model.PoolMean {
		mean = 1
	}
	if unit {
		scaled = 1
	}
	b.launch(b.kernels["pool_rows"], cudrv.Grid{X: texts, Y: 1, Z: 1, Threads: rowThreads}).
		ptrs(b.reserve(&b.output, 4*int64(texts)*int64(t.width)), t.buf.ptr, b.step.dev.spans).ints(mean, scaled, t.width)
	return b.fetch(texts, t.width)
}

// Classify applies a classification head to the first row of each text.
func (b *Backend) Classify(x model.Tensor, dense, out model.Linear) ([][]float32, error) {
	texts := len(b.step.spans) / 4
	first := make([]int32, texts)
	for i := range first {
		first[i] = b.step.spans[4*i]
	}
	from, width, index := x.(*tensor).buf.ptr, x.Width(), stage(b, first)
	if dense.W != nil {
		b.prepare(texts, width, dense.W.(*matrix))
		b.normalise(from, model.Norm{}, index)
		from, width, index = b.resize(&b.gate, texts, dense.W.Rows()), dense.W.Rows(), 0
		b.multiply(dense, from, 0)
		b.activateTo(forms{from}, actTanh, from, 0, texts, width)
	}
	b.prepare(texts, width, out.W.(*matrix))
	b.normalise(from, model.Norm{}, index)
	b.multiply(out, b.reserve(&b.output, 4*int64(texts)*int64(out.W.Rows())), 0)
	return b.fetch(texts, out.W.Rows())
}
