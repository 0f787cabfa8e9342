package cpu

import (
	"slices"

	"ragd/inference/cpu/kernel"
)

// finer is the second half of rows that are quantised finer than the others: what
// rounding to eight bits left of them is quantised again, multiplied by the same
// weights, and added. Two bytes a value leave nothing to be seen of the rounding.
//
// Queries, keys and values of an encoder want it for the first and the last row of
// a text. Every other row attends to these two more than to any other (Clark et
// al., arXiv 1906.04341), so that an error in their values is one of the whole text,
// which no averaging takes away: of multilingual-e5-small's distance to float32,
// rounding these two rows for these three products is more than half, and they are
// two rows of some hundred.
type finer struct {
	rows   []int32 // in the order of the step; none: nothing is finer
	cols   int
	floats []float32
	acts   kernel.Acts
}

// prepare sizes it for rows of the step, which ascend.
func (f *finer) prepare(rows []int32, cols int) {
	f.rows, f.cols = rows, cols
	if len(rows) > 0 {
		f.floats = grow(f.floats, len(rows)*cols)
		f.acts.Resize(len(rows), cols)
	}
}

// take quantises what acts leaves of row r, whose values are x.
func (f *finer) take(set *kernel.Set, acts *kernel.Acts, r int, x []float32) {
	i, found := slices.BinarySearch(f.rows, int32(r))
	if !found {
		return
	}
	rest := f.floats[i*f.cols : (i+1)*f.cols]
	codes, scales := acts.Q[r*f.cols:(r+1)*f.cols], acts.D[r*f.cols/kernel.BlockCols:]
	for c := range rest {
		// The conversion keeps the product from being fused into the difference
		// on some machines and not on others.
		rest[c] = x[c] - float32(float32(codes[c])*scales[c/kernel.BlockCols])
	}
	set.Quantize(&f.acts, i, rest)
}

// span is the range of f.rows that lies in rows [rlo,rhi) of the step.
func (f *finer) span(rlo, rhi int) (lo, hi int) {
	lo, _ = slices.BinarySearch(f.rows, int32(rlo))
	hi, _ = slices.BinarySearch(f.rows, int32(rhi))
	return lo, hi
}

// planFiner makes room for the products of the finer rows' rests.
func (p *products) planFiner() {
	n := len(p.b.input.finer.rows)
	size := 0
	for i := range p.outs {
		size += n * p.outs[i].w.rows
	}
	p.rests = grow(p.rests, size)
	rests := p.rests
	for i := range p.outs {
		o := &p.outs[i]
		o.rest, rests = rests[:n*o.w.rows], rests[n*o.w.rows:]
	}
}

// addFiner adds the products of the rests to a tile. An element is the sum of its
// two halves whatever the tile.
func (p *products) addFiner(o *output, rlo, rhi, clo, chi int) {
	f, stride := &p.b.input.finer, o.w.rows
	lo, hi := f.span(rlo, rhi)
	if lo == hi {
		return
	}
	p.b.set.MatMul(o.rest, stride, &f.acts, lo, hi, o.w.packed, clo, chi)
	for i := lo; i < hi; i++ {
		at := int(f.rows[i]) * o.stride
		p.b.set.Add(o.dst[at+clo:at+chi], o.rest[i*stride+clo:i*stride+chi])
	}
}
