package cpu

import "ragd/inference/model"

// rowOp does one thing to one row of the step.
type rowOp interface {
	row(b *Backend, r int)
}

// rowTask runs an operation over rows, a few at a time: a single row is done by
// the caller at once.
type rowTask struct {
	b    *Backend
	op   rowOp
	rows int
}

const rowChunk = 8

func (b *Backend) eachRow(op rowOp, rows int) {
	b.rowTask.op, b.rowTask.rows = op, rows
	b.run(&b.rowTask, ceil(rows, rowChunk))
}

func (t *rowTask) do(_, item int) {
	for r := item * rowChunk; r < min((item+1)*rowChunk, t.rows); r++ {
		t.op.row(t.b, r)
	}
}

// rowOps holds one of each operation, so that running one allocates nothing.
type rowOps struct {
	embed      embedRows
	embedTexts embedTextRows
	norm       normRows
	gate       gateRows
	gelu       geluRows
	addNorm    addNormRows
	layerNorm  layerNormRows
	append     appendRows
	half       halfRows
}

// normalise is dst = n(x) for a norm that is there; dst may be x.
func (b *Backend) normalise(dst, x []float32, n *model.Norm) {
	if n.Shift == nil {
		b.set.RMSNorm(dst, x, values(n.Gain), n.Eps)
		return
	}
	b.set.LayerNorm(dst, x, values(n.Gain), values(n.Shift), n.Eps)
}

// embedRows looks the step's tokens up.
type embedRows struct {
	x     *tensor
	table *matrix
	scale float32
}

func (o *embedRows) row(b *Backend, r int) {
	x := o.x.row(r)
	o.table.row(x, int(b.step.tokens[r]))
	if o.scale != 1 {
		b.set.Scale(x, o.scale)
	}
}

// normRows makes the input of products: the norm of x, or of some of its rows.
type normRows struct {
	x     *tensor
	n     model.Norm
	index []int32 // nil: all
}

func (o *normRows) row(b *Backend, r int) {
	from := r
	if o.index != nil {
		from = int(o.index[r])
	}
	x := o.x.row(from)
	if o.n.Gain != nil {
		b.normalise(b.input.row(r), x, &o.n)
		x = b.input.row(r)
	}
	b.input.take(b.set, r, x)
}

// gateRows makes act(gate)·up the input of the product that follows.
type gateRows struct{ act model.Activation }

func (o *gateRows) row(b *Backend, r int) {
	gate, up := b.gate.row(r), b.up.row(r)
	if o.act == model.GELUTanh {
		b.set.GELUTanhMul(gate, gate, up)
	} else {
		b.set.SiLUMul(gate, gate, up)
	}
	b.input.take(b.set, r, gate)
}

// geluRows makes gelu(up) the input of the product that follows.
type geluRows struct{}

func (o *geluRows) row(b *Backend, r int) {
	up := b.up.row(r)
	b.set.GELU(up)
	b.input.take(b.set, r, up)
}

// addNormRows is x += n(hidden).
type addNormRows struct {
	x *tensor
	n model.Norm
}

func (o *addNormRows) row(b *Backend, r int) {
	h := b.hidden.row(r)
	b.normalise(h, h, &o.n)
	b.set.Add(o.x.row(r), h)
}

// layerNormRows is x = n(x).
type layerNormRows struct {
	x *tensor
	n model.Norm
}

func (o *layerNormRows) row(b *Backend, r int) {
	x := o.x.row(r)
	b.normalise(x, x, &o.n)
}
