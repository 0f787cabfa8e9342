package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// attended is attention by its definition, in float64, over the positions [from,to).
func attended(q []float32, k, v []float32, from, to int, scale float32) []float32 {
	dim := len(q)
	k, v = k[from*dim:], v[from*dim:]
	w, top := make([]float64, to-from), math.Inf(-1)
	for j := range w {
		for i := range dim {
			w[j] += float64(q[i]) * float64(k[j*dim+i])
		}
		w[j] *= float64(scale)
		top = max(top, w[j])
	}
	sum, out := 0.0, make([]float64, dim)
	for j := range w {
		p := math.Exp(w[j] - top)
		sum += p
		for i := range dim {
			out[i] += p * float64(v[j*dim+i])
		}
	}
	res := make([]float32, dim)
	for i := range res {
		res[i] = float32(out[i] / sum)
	}
	return res
}

// attendKV is keys and values of some positions, as rows and as a cache has them:
// blocks in no order, the last ones full of NaN behind the last position.
type attendKV struct {
	rowsK, rowsV []float32
	k16, v16     []uint16
	k32, v32     []float32
	blocks       []int32
}

func newAttendKV(t testing.TB, r *rand.Rand, n, dim int) attendKV {
	kh, vh := halves(r, n*dim), halves(r, n*dim)
	kv := attendKV{rowsK: make([]float32, n*dim), rowsV: make([]float32, n*dim)}
	portableFromF16(kv.rowsK, kh)
	portableFromF16(kv.rowsV, vh)
	count := (n + AttendKeys - 1) / AttendKeys
	for _, b := range r.Perm(count) {
		kv.blocks = append(kv.blocks, int32(b))
	}
	size := count * AttendKeys * dim
	k16, v16 := make([]uint16, size), make([]uint16, size)
	for i := range k16 {
		k16[i], v16[i] = 0x7e00, 0x7e00
	}
	for pos := range n {
		at, j := int(kv.blocks[pos/AttendKeys])*AttendKeys*dim, pos%AttendKeys
		for d := range dim {
			k16[at+d*AttendKeys+j], v16[at+j*dim+d] = kh[pos*dim+d], vh[pos*dim+d]
		}
	}
	kv.k16, kv.v16 = guarded(t, k16), guarded(t, v16)
	kv.k32, kv.v32 = guarded(t, make([]float32, size)), guarded(t, make([]float32, size))
	portableFromF16(kv.k32, k16)
	portableFromF16(kv.v32, v16)
	return kv
}

// TestAttend walks a cache chunk by chunk, for every kind of group, head dimensions
// with and without a kernel, and first and last chunks of many sizes.
func TestAttend(t *testing.T) {
	r := newRand(1)
	for _, dim := range []int{8, 12, 16, 24, 32, 64, 80, 96, 112, 128, 256} {
		for _, n := range []int{1, 2, 3, 7, 15, 16, 17, 31, 33, 47, 48, 63, 64, 65, 140} {
			t.Run(fmt.Sprintf("dim=%d/n=%d", dim, n), func(t *testing.T) { testAttend(t, r, n, dim) })
		}
	}
}

func testAttend(t *testing.T, r *rand.Rand, n, dim int) {
	kv := newAttendKV(t, r, n, dim)
	for _, rows := range []int{1, 2, 3, 4, 5, 6, 7, 9, 12} {
		q := guarded(t, normals(r, rows*dim))
		for _, from := range []int{0, min(n-1, 13), max(0, n-21)} {
			c := attendCase{rows: rows, dim: dim, from: from, to: n, scale: 1 / float32(math.Sqrt(float64(dim)))}
			c.check(t, q, &kv)
		}
	}
}

type attendCase struct {
	rows, dim, from, to int
	scale               float32
}

// check compares the kernels of every set with the definition, and their bits with
// each other's: tiles and rows alone, half precision and float32, every assembly.
func (c attendCase) check(t *testing.T, q []float32, kv *attendKV) {
	t.Helper()
	var first *attendRun
	for _, s := range Sets() {
		name := fmt.Sprintf("%s %+v", s.Name, c)
		tile, alone, wide := c.start(t), c.start(t), c.start(t)
		c.chunks(func(blocks []int32, from, to int) {
			s.AttendTile(tile.st, tile.acc, q, kv.k16, kv.v16, blocks, from, to, c.scale)
			s.AttendTileF32(wide.st, wide.acc, q, kv.k32, kv.v32, blocks, from, to, c.scale)
			for i := range c.rows {
				lo, hi := i*c.dim, (i+1)*c.dim
				s.AttendTile(alone.st[i:i+1], alone.acc[lo:hi], q[lo:hi], kv.k16, kv.v16, blocks, from, to, c.scale)
			}
		}, kv.blocks)
		tile.same(t, name+" tile against row", &alone)
		tile.same(t, name+" f16 against f32", &wide)
		if s.Name != "portable" && c.dim%8 == 0 {
			if first != nil {
				tile.same(t, name+" against the first assembly", first)
			}
			first = &attendRun{st: slices.Clone(tile.st), acc: slices.Clone(tile.acc)}
		}
		for i := range c.rows {
			lo, hi := i*c.dim, (i+1)*c.dim
			s.Scale(tile.acc[lo:hi], 1/tile.st[i].Sum)
			near(t, name, tile.acc[lo:hi], attended(q[lo:hi], kv.rowsK, kv.rowsV, c.from, c.to, c.scale), 1, 2e-5)
		}
	}
}

// chunks calls do with the part of [from,to) in each chunk.
func (c attendCase) chunks(do func(blocks []int32, from, to int), blocks []int32) {
	for at := 0; at < c.to; at += attendMost {
		from, to := max(c.from-at, 0), min(c.to-at, attendMost)
		if from >= to {
			continue
		}
		skip := from / AttendKeys
		do(blocks[at/AttendKeys+skip:], from-skip*AttendKeys, to-skip*AttendKeys)
	}
}

type attendRun struct {
	st  []SoftmaxState
	acc []float32
}

func (r *attendRun) same(t *testing.T, what string, o *attendRun) {
	t.Helper()
	same(t, what, r.acc, o.acc)
	for i := range r.st {
		same(t, what+", state", []float32{r.st[i].Max, r.st[i].Sum}, []float32{o.st[i].Max, o.st[i].Sum})
	}
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
	const dim, n = 16, 85
	kv := newAttendKV(t, r, n, dim)
	for rows := 1; rows <= 62; rows++ {
		q := guarded(t, normals(r, rows*dim))
		attendCase{rows: rows, dim: dim, from: 3, to: n, scale: 0.25}.check(t, q, &kv)
	}
}

// TestAttendScales: scores of any size do not overflow.
func TestAttendScales(t *testing.T) {
	r := newRand(2)
	const dim = 64
	kv := newAttendKV(t, r, 5, dim)
	q := normals(r, dim)
	for _, scale := range []float32{0, 0.125, 1000, 1e30} {
		want := attended(q, kv.rowsK, kv.rowsV, 0, 5, scale)
		for _, s := range Sets() {
			st, acc := []SoftmaxState{{Max: float32(math.Inf(-1))}}, make([]float32, dim)
			s.AttendTile(st, acc, q, kv.k16, kv.v16, kv.blocks, 0, 5, scale)
			s.Scale(acc, 1/st[0].Sum)
			near(t, fmt.Sprintf("%s scale %g", s.Name, scale), acc, want, 1, 2e-3)
		}
	}
}
