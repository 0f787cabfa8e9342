//go:build cuda && cgo

package cuda

import (
	"slices"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

const embedThreads = 128

// embed sets x to scale times the table's rows of ids, or adds them.
func (b *Backend) embed(x *tensor, table model.Matrix, ids cudrv.Ptr, scale float32, add int) {
	m := table.(*matrix)
	b.launch(m.embed, cudrv.Grid{X: b.step.rows, Y: ceil(x.width, embedThreads), Z: 1, Threads: embedThreads}).
		ptrs(x.buf.ptr).ptrs(m.weights[:]...).ptrs(ids).floats(scale*m.unit).ints(add, x.width)
}

// Embed sets x to the table's rows of the step's tokens, times scale.
func (b *Backend) Embed(x model.Tensor, table model.Matrix, scale float32) {
	b.embed(x.(*tensor), table, b.step.dev.tokens, scale, 0)
}

// Project normalises x and multiplies the result by several matrices.
func (b *Backend) Project(x model.Tensor, n model.Norm, out ...model.Projection) {
	readers := make([]*matrix, len(out))
	for i := range out {
		readers[i] = out[i].W.(*matrix)
	}
	t := x.(*tensor)
	b.prepare(b.step.rows, t.width, readers...)
	finer := len(b.step.finer) > 0 && slices.ContainsFunc(readers, func(m *matrix) bool { return m.reads == asCodes })
	if finer {
		b.input.to[0] = b.reserve(&b.input.floats, 4*int64(b.step.rows)*int64(t.width))
	}
	b.normalise(t.buf.ptr, n, 0)
	for i := range out {
		b.multiply(out[i].Linear, out[i].Out.(*tensor).buf.ptr, 0)
	}
	if finer {
		b.addFiner(out)
	}
}

// addFiner adds the products of what rounding to eight bits left of the first and the
// last row of each text, quantised again, as the CPU backend does: every other row
// attends to these two most.
func (b *Backend) addFiner(out []model.Projection) {
	rows, index := len(b.step.finer), stage(b, b.step.finer)
	whole := b.input.to
	b.input, b.rest = b.rest, b.input
	b.prepare(rows, b.rest.cols, &matrix{reads: asCodes})
	b.launch(b.kernels["rest_rows"], cudrv.Grid{X: rows, Y: 1, Z: 1, Threads: rowThreads}).
		ptrs(b.input.to[1:4]...).ptrs(whole[:3]...).ptrs(index).ints(b.input.cols)
	for i := range out {
		m := out[i].W.(*matrix)
		if m.reads != asCodes {
			continue
		}
		rest := b.reserve(&b.restOut, 4*int64(rows)*int64(m.rows))
		b.multiply(model.Linear{W: m}, rest, 0)
		b.launch(b.kernels["add_rows"], cudrv.Grid{X: rows, Y: ceil(m.rows, rowThreads), Z: 1, Threads: rowThreads}).
			ptrs(out[i].Out.(*tensor).buf.ptr, rest, index).ints(m.rows)
	}
	b.input, b.rest = b.rest, b.input
}

// Append rotates q and k, and writes k and v at the step's positions.
func (b *Backend) Append(c model.Cache, layer int, q, k, v model.Tensor, r model.Rotation) {
	kv, turn := c.(*cache), r.Rope.(*rope)
	shape := &kv.shape
	b.fill(turn)
	heads := q.Width() / shape.HeadDim
	halves := 0
	if turn.order == model.Halves {
		halves = 1
	}
	b.launch(b.kernels["append_"+kv.format.name], cudrv.Grid{X: b.step.rows, Y: heads + shape.KVHeads, Z: 1, Threads: 32}).
		ptrs(q.(*tensor).buf.ptr, k.(*tensor).buf.ptr, v.(*tensor).buf.ptr).ptrs(kv.layer(layer)...).ptrs(turn.cos, turn.sin, b.step.dev.slots).
		ptrs(ptrOf(r.QNorm.Gain), ptrOf(r.KNorm.Gain)).floats(r.QNorm.Eps, r.KNorm.Eps).
		ints(heads, shape.KVHeads, shape.HeadDim, turn.Dim(), halves)
}

// Residual is x += post(W·in + b).
func (b *Backend) Residual(x, in model.Tensor, w model.Linear, post model.Norm) {
	t := in.(*tensor)
	b.prepare(b.step.rows, t.width, w.W.(*matrix))
	b.normalise(t.buf.ptr, model.Norm{}, 0)
	b.multiplyAdded(x.(*tensor), w, post)
}

// multiplyAdded is x += post(W·input + b).
func (b *Backend) multiplyAdded(x *tensor, w model.Linear, post model.Norm) {
	if post.Gain == nil {
		b.multiply(w, 0, x.buf.ptr)
		return
	}
	hidden := b.resize(&b.hidden, b.step.rows, x.width)
	b.multiply(w, hidden, 0)
	b.launch(b.kernels["add_norm_rows"], cudrv.Grid{X: b.step.rows, Y: 1, Z: 1, Threads: rowThreads}).
		ptrs(x.buf.ptr, hidden, ptrOf(post.Gain)).floats(post.Eps).ints(x.width)
}

// FeedForward applies a gated feed-forward layer with its residual.
func (b *Backend) FeedForward(x model.Tensor, f *model.GatedFFN) {
	t, rows, wide := x.(*tensor), b.step.rows, f.Gate.Rows()
	gate, up := b.resize(&b.gate, rows, wide), b.resize(&b.up, rows, wide)
	b.prepare(rows, t.width, f.Gate.(*matrix), f.Up.(*matrix))
	b.normalise(t.buf.ptr, f.Norm, 0)
	b.multiply(model.Linear{W: f.Gate}, gate, 0)
	b.multiply(model.Linear{W: f.Up}, up, 0)

	act := actSiLU
	if f.Act == model.GELUTanh {
		act = actGELUTanh
	}
	b.prepare(rows, wide, f.Down.(*matrix))
	b.activate(act, gate, up)
	b.multiplyAdded(t, model.Linear{W: f.Down}, f.Post)
}

// Logits multiplies the rows that asked for logits, normalised, by w, runs the step
// and fetches them.
func (b *Backend) Logits(x model.Tensor, n model.Norm, w model.Matrix) ([][]float32, error) {
	rows := len(b.step.logits)
	if rows == 0 {
		_, err := b.flush(0, 0)
		return nil, err
	}
	b.logits(x, n, w)
	return b.fetch(rows, w.Rows())
}

// logits makes those of the rows that asked for them the output.
func (b *Backend) logits(x model.Tensor, n model.Norm, w model.Matrix) cudrv.Ptr {
	t, rows := x.(*tensor), len(b.step.logits)
	b.prepare(rows, t.width, w.(*matrix))
	b.normalise(t.buf.ptr, n, stage(b, b.step.logits))
	out := b.reserve(&b.output, 4*int64(rows)*int64(w.Rows()))
	b.multiply(model.Linear{W: w}, out, 0)
	return out
}

// fetch runs the step and returns the output's rows.
func (b *Backend) fetch(rows, width int) ([][]float32, error) {
	data, err := b.flush(b.output.ptr, 4*rows*width)
	if err != nil {
		return nil, err
	}
	all := floatsOf(data)
	b.rows = b.rows[:0]
	for r := range rows {
		b.rows = append(b.rows, all[r*width:(r+1)*width])
	}
	return b.rows, nil
}
