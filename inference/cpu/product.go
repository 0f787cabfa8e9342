package cpu

import (
	"ragd/inference/cpu/kernel"
)

// input is the shared input of products: float32 rows, and the same quantised.
// Each form is made only when a weight matrix reads it.
type input struct {
	rows, cols int
	floats     []float32
	acts       kernel.Acts
	quantized  bool // a quantised matrix reads it
	plain      bool // a float matrix reads it
	finer      finer
}

// prepare sizes the input for the matrices that will read it.
func (in *input) prepare(rows, cols int, outs []output) {
	in.rows, in.cols = rows, cols
	in.quantized, in.plain = false, false
	for i := range outs {
		if outs[i].w.packed.Quantized() {
			in.quantized = true
		} else {
			in.plain = true
		}
	}
	in.floats = grow(in.floats, rows*cols)
	if in.quantized {
		in.acts.Resize(rows, cols)
	}
	in.finer.prepare(nil, cols)
}

// refine has some rows of the step, all of which are the input, quantised finer.
func (in *input) refine(rows []int32) {
	if in.quantized {
		in.finer.prepare(rows, in.cols)
	}
}

// row is the float32 form of a row, and where its norm is made.
func (in *input) row(r int) []float32 { return in.floats[r*in.cols : (r+1)*in.cols] }

// take makes x the row r of the input, in the forms that will be read. x may be
// the row itself.
func (in *input) take(set *kernel.Set, r int, x []float32) {
	if in.quantized {
		set.Quantize(&in.acts, r, x)
		in.finer.take(set, &in.acts, r, x)
	}
	if in.plain {
		copy(in.row(r), x)
	}
}

// output is one product: where it goes and what happens on the way.
type output struct {
	w      *matrix
	bias   []float32
	dst    []float32
	stride int
	sum    []float32 // when set, the result is added to it too (same stride)
	rest   []float32 // products of the finer rows' rests

	tiles int // number of tiles, set when the product is planned
	wide  int // weight rows in a tile
}

// products multiplies the backend's input by several matrices, tile by tile.
type products struct {
	b    *Backend
	outs []output
	tall int // activation rows in a tile

	rests []float32
}

// Tiles are sized so that the weights of a tile stay in the first-level cache and
// its activations in the second while the kernel goes over them.
const (
	tileRows = 64
	tileCols = 64
	// tilesPerThread is how many tiles a thread gets at the least when the work
	// is large enough: with fewer, the last tile leaves the others waiting.
	tilesPerThread = 4
)

// multiply runs the planned products over the backend's input.
func (b *Backend) multiply() {
	p := &b.products
	p.tall = min(tileRows, b.input.rows)
	p.planFiner()
	total := 0
	for i := range p.outs {
		o := &p.outs[i]
		o.wide = b.tileWidth(o.w.rows)
		o.tiles = ceil(b.input.rows, p.tall) * ceil(o.w.rows, o.wide)
		total += o.tiles
	}
	b.run(p, total)
}

// tileWidth is the number of weight rows in a tile: many for a single row of
// activations, where a tile is little work.
func (b *Backend) tileWidth(rows int) int {
	if b.input.rows > 4 {
		return tileCols
	}
	wide := ceil(rows, b.pool.size*tilesPerThread)
	return max(ceil(wide, kernel.PackRows)*kernel.PackRows, tileCols)
}

func ceil(n, d int) int { return (n + d - 1) / d }

func (p *products) do(worker, item int) {
	for i := range p.outs {
		o := &p.outs[i]
		if item < o.tiles {
			p.tile(worker, o, item)
			return
		}
		item -= o.tiles
	}
}

// tile computes one tile. Tiles that share weights follow each other.
func (p *products) tile(worker int, o *output, item int) {
	in := &p.b.input
	down := ceil(in.rows, p.tall)
	clo, rlo := item/down*o.wide, item%down*p.tall
	chi, rhi := min(clo+o.wide, o.w.rows), min(rlo+p.tall, in.rows)
	p.multiply(o, rlo, rhi, clo, chi)
	for r := rlo; r < rhi; r++ {
		lo, hi := r*o.stride+clo, r*o.stride+chi
		if o.bias != nil {
			p.b.set.Add(o.dst[lo:hi], o.bias[clo:chi])
		}
		if o.sum != nil {
			p.b.set.Add(o.sum[lo:hi], o.dst[lo:hi])
		}
	}
}

func (p *products) multiply(o *output, rlo, rhi, clo, chi int) {
	in := &p.b.input
	if o.w.packed.Quantized() {
		p.b.set.MatMul(o.dst, o.stride, &in.acts, rlo, rhi, o.w.packed, clo, chi)
		p.addFiner(o, rlo, rhi, clo, chi)
		return
	}
	p.b.set.MatMulF32(o.dst, o.stride, in.floats, in.cols, rlo, rhi, o.w.packed, clo, chi)
}
