package cpu

import "ragd/inference/model"

// Embed sets x to the table's rows of the step's tokens, times scale.
func (b *Backend) Embed(x model.Tensor, table model.Matrix, scale float32) {
	b.ops.embed = embedRows{x.(*tensor), table.(*matrix), scale}
	b.eachRow(&b.ops.embed, len(b.step.tokens))
}

// Project normalises x and multiplies the result by several matrices.
func (b *Backend) Project(x model.Tensor, n model.Norm, out ...model.Projection) {
	p := &b.products
	p.outs = p.outs[:0]
	for i := range out {
		dst := out[i].Out.(*tensor)
		p.outs = append(p.outs, product(out[i].Linear, dst, nil))
	}
	b.finerInput(x.(*tensor), n, nil, b.step.finer)
	b.multiply()
}

// product is the output W·input + b into dst, and added to sum when there is one.
func product(l model.Linear, dst, sum *tensor) output {
	o := output{w: l.W.(*matrix), bias: values(l.B), dst: dst.data, stride: dst.width}
	if sum != nil {
		o.sum = sum.data
	}
	return o
}

// normedInput makes the norm of x (or of the rows index lists) the input of the
// planned products.
func (b *Backend) normedInput(x *tensor, n model.Norm, index []int32) {
	b.finerInput(x, n, index, nil)
}

// finerInput is normedInput with some rows quantised finer.
func (b *Backend) finerInput(x *tensor, n model.Norm, index, finer []int32) {
	rows := len(b.step.tokens)
	if index != nil {
		rows = len(index)
	}
	b.input.prepare(rows, x.width, b.products.outs)
	b.input.refine(finer)
	b.ops.norm = normRows{x, n, index}
	b.eachRow(&b.ops.norm, rows)
}

// one plans a single product.
func (b *Backend) one(o output) { b.products.outs = append(b.products.outs[:0], o) }

// Residual is x += post(W·in + b).
func (b *Backend) Residual(x, in model.Tensor, w model.Linear, post model.Norm) {
	b.planAdded(x.(*tensor), w, post)
	b.normedInput(in.(*tensor), model.Norm{}, nil)
	b.multiply()
	b.addPost(x.(*tensor), post)
}

// planAdded plans a product that is added to x, at once unless it is normalised
// before.
func (b *Backend) planAdded(x *tensor, w model.Linear, post model.Norm) {
	b.hidden.resize(len(b.step.tokens), x.width)
	if post.Gain == nil {
		b.one(product(w, &b.hidden, x))
		return
	}
	b.one(product(w, &b.hidden, nil))
}

func (b *Backend) addPost(x *tensor, post model.Norm) {
	if post.Gain == nil {
		return
	}
	b.ops.addNorm = addNormRows{x, post}
	b.eachRow(&b.ops.addNorm, len(b.step.tokens))
}

// FeedForward applies a gated feed-forward layer with its residual.
func (b *Backend) FeedForward(x model.Tensor, f *model.GatedFFN) {
	rows := len(b.step.tokens)
	b.gate.resize(rows, f.Gate.Rows())
	b.up.resize(rows, f.Up.Rows())
	b.products.outs = append(b.products.outs[:0],
		product(model.Linear{W: f.Gate}, &b.gate, nil),
		product(model.Linear{W: f.Up}, &b.up, nil))
	b.normedInput(x.(*tensor), f.Norm, nil)
	b.multiply()

	b.planAdded(x.(*tensor), model.Linear{W: f.Down}, f.Post)
	b.input.prepare(rows, f.Gate.Rows(), b.products.outs)
	b.ops.gate = gateRows{f.Act}
	b.eachRow(&b.ops.gate, rows)
	b.multiply()
	b.addPost(x.(*tensor), f.Post)
}

// Logits multiplies the rows that asked for logits, normalised, by w.
func (b *Backend) Logits(x model.Tensor, n model.Norm, w model.Matrix) ([][]float32, error) {
	defer b.seat.end()
	rows := len(b.step.logits)
	b.results = b.results[:0]
	if rows == 0 {
		return b.results, nil
	}
	vocab := w.Rows()
	b.logits = grow(b.logits, rows*vocab)
	b.one(output{w: w.(*matrix), dst: b.logits, stride: vocab})
	b.normedInput(x.(*tensor), n, b.step.logits)
	b.multiply()
	for r := range rows {
		b.results = append(b.results, b.logits[r*vocab:(r+1)*vocab])
	}
	return b.results, nil
}
