package kernel

import (
	"fmt"
	"math"
	"testing"
)

// attended is attention by its definition, in float64, over rows of dim values
// that lie stride apart.
func attended(q []float32, k, v []float32, n, stride int, scale float32) []float32 {
	dim := len(q)
	w, top := make([]float64, n), math.Inf(-1)
	for j := range w {
		for i := range dim {
			w[j] += float64(q[i]) * float64(k[j*stride+i])
		}
		w[j] *= float64(scale)
		top = max(top, w[j])
	}
	sum, out := 0.0, make([]float64, dim)
	for j := range w {
		p := math.Exp(w[j] - top)
		sum += p
		for i := range dim {
			out[i] += p * float64(v[j*stride+i])
		}
	}
	res := make([]float32, dim)
	for i := range res {
		res[i] = float32(out[i] / sum)
	}
	return res
}

// TestAttend walks a cache block by block, for every number of query rows, head
// dimensions with and without a kernel, and a last block of every size.
func TestAttend(t *testing.T) {
	r := newRand(1)
	for _, dim := range []int{8, 12, 24, 32, 64, 80, 96, 128, 256} {
		for _, n := range []int{1, 2, 3, 5, 7, 9, 12, 15, 16, 33, 47, 64, 65, 140} {
			stride := dim + 8*(n%3)
			size := (n-1)*stride + dim
			kh, vh := guarded(t, halves(r, size)), guarded(t, halves(r, size))
			k, v := guarded(t, make([]float32, size)), guarded(t, make([]float32, size))
			portableFromF16(k, kh)
			portableFromF16(v, vh)
			for _, rows := range []int{1, 2, 3, 4, 5, 6, 7, 9} {
				q := guarded(t, normals(r, rows*dim))
				for _, s := range Sets() {
					attend := attendCase{rows: rows, dim: dim, n: n, stride: stride, scale: 1 / float32(math.Sqrt(float64(dim)))}
					attend.check(t, s, q, kh, vh, k, v)
				}
			}
		}
	}
}

type attendCase struct {
	rows, dim, n, stride int
	scale                float32
}

// check compares the three kernels with the definition, and each other's bits.
func (c attendCase) check(t *testing.T, s *Set, q []float32, kh, vh []uint16, k, v []float32) {
	t.Helper()
	tile, alone, wide := c.start(t), c.start(t), c.start(t)
	var runs []Run
	for at := 0; at < c.n; at += attendRows {
		n, o := min(attendRows, c.n-at), at*c.stride
		runs = append(runs, Run{o, n})
		for i := range c.rows {
			lo, hi := i*c.dim, (i+1)*c.dim
			s.AttendBlock(&alone.st[i], alone.acc[lo:hi], q[lo:hi], kh[o:], vh[o:], n, c.stride, c.scale)
		}
	}
	s.AttendTile(tile.st, tile.acc, q, kh, vh, runs, c.stride, c.scale)
	s.AttendTileF32(wide.st, wide.acc, q, k, v, runs, c.stride, c.scale)
	name := fmt.Sprintf("%s %+v", s.Name, c)
	same(t, name+" tile against block", tile.acc, alone.acc)
	same(t, name+" f16 against f32", tile.acc, wide.acc)
	for i := range c.rows {
		lo, hi := i*c.dim, (i+1)*c.dim
		s.Scale(tile.acc[lo:hi], 1/tile.st[i].Sum)
		near(t, name, tile.acc[lo:hi], attended(q[lo:hi], k, v, c.n, c.stride, c.scale), 1, 2e-5)
	}
}

type attendRun struct {
	st  []SoftmaxState
	acc []float32
}

func (c attendCase) start(t *testing.T) attendRun {
	run := attendRun{st: guarded(t, make([]SoftmaxState, c.rows)), acc: guarded(t, make([]float32, c.rows*c.dim))}
	for i := range run.st {
		run.st[i].Max = float32(math.Inf(-1))
	}
	return run
}

// TestAttendManyRows covers every split of rows into calls and groups.
func TestAttendManyRows(t *testing.T) {
	r := newRand(3)
	const dim, n = 16, 21
	kh, vh := guarded(t, halves(r, n*dim)), guarded(t, halves(r, n*dim))
	k, v := guarded(t, make([]float32, n*dim)), guarded(t, make([]float32, n*dim))
	portableFromF16(k, kh)
	portableFromF16(v, vh)
	for rows := 1; rows <= 50; rows++ {
		q := guarded(t, normals(r, rows*dim))
		for _, s := range Sets() {
			attend := attendCase{rows: rows, dim: dim, n: n, stride: dim, scale: 0.25}
			attend.check(t, s, q, kh, vh, k, v)
		}
	}
}

// TestAttendIgnoresUnusedRows: what lies in a block behind row n has no effect,
// be it NaN, and scores of any size do not overflow.
func TestAttendIgnoresUnusedRows(t *testing.T) {
	r := newRand(2)
	const dim = 64
	k, v := halves(r, 16*dim), halves(r, 16*dim)
	for i := 5 * dim; i < len(k); i++ {
		k[i], v[i] = 0x7e00, 0x7e00
	}
	wide, values := make([]float32, len(k)), make([]float32, len(v))
	portableFromF16(wide, k)
	portableFromF16(values, v)
	q := normals(r, dim)
	for _, scale := range []float32{0, 0.125, 1000, 1e30} {
		want := attended(q, wide, values, 5, dim, scale)
		for _, s := range Sets() {
			st, acc := []SoftmaxState{{Max: float32(math.Inf(-1))}}, make([]float32, dim)
			s.AttendTile(st, acc, q, k, v, []Run{{0, 5}}, dim, scale)
			s.Scale(acc, 1/st[0].Sum)
			near(t, fmt.Sprintf("%s scale %g", s.Name, scale), acc, want, 1, 2e-3)
		}
	}
}
