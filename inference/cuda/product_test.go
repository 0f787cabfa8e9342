//go:build cuda && cgo

package cuda

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
	"ragd/inference/quant"
)

var allTypes = []quant.Type{
	quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K,
}

// portableProduct is x·Wᵀ (n × rows) by the portable kernels.
func portableProduct(t *testing.T, typ quant.Type, rows, cols, n int, data []byte, x []float32) []float32 {
	t.Helper()
	set := kernel.Portable()
	w, err := kernel.Pack(kernel.Type(typ), rows, cols, data)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, n*rows)
	if !w.Quantized() {
		set.MatMulF32(want, rows, x, cols, 0, n, w, 0, rows)
		return want
	}
	var acts kernel.Acts
	acts.Resize(n, cols)
	for r := range n {
		set.Quantize(&acts, r, x[r*cols:(r+1)*cols])
	}
	set.MatMul(want, rows, &acts, 0, n, w, 0, rows)
	return want
}

// Every format, for numbers of weight rows, columns and activation rows that are
// and are not multiples of what a launch takes at once. A row's result has the same
// bits whatever the others.
func TestProductsMatchPortable(t *testing.T) {
	inBothOrders(t, func(t *testing.T) {
		b := newBackend(t)
		rng := rand.New(rand.NewPCG(1, 2))
		for _, typ := range allTypes {
			for _, shape := range [][2]int{{1, 1}, {5, 3}, {34, 5}} {
				rows, cols := shape[0], shape[1]*typ.BlockSize()
				if typ.BlockSize() == 1 {
					cols = 37 * shape[1]
				}
				data := randomWeights(t, rng, typ, rows, cols)
				m := loadMatrix(t, b, typ, rows, cols, data)
				x := random(rng, 17*cols)
				want := portableProduct(t, typ, rows, cols, 17, data, x)
				for _, n := range []int{17, 9, 8, 4, 3, 1} {
					got := runProduct(t, b, m, x[:n*cols], n)
					if d := worst(got, want[:n*rows]); d > 2e-6 {
						t.Errorf("%s %d × %d, %d rows: off by %g", typ, rows, cols, n, d)
					}
					if n == 17 {
						want = got // the others must have these bits
					} else if !slices.Equal(got, want[:n*rows]) {
						t.Errorf("%s %d × %d: bits differ between %d and 17 rows", typ, rows, cols, n)
					}
				}
			}
		}
	})
}

func runProduct(t *testing.T, b *Backend, m *matrix, x []float32, n int) []float32 {
	t.Helper()
	in, out := &tensor{width: m.cols}, &tensor{width: m.rows}
	b.tensors = append(b.tensors[:0], in, out)
	begin(b, n)
	put(t, b, in.buf.ptr, x)
	b.Project(in, model.Norm{}, model.Projection{Linear: model.Linear{W: m}, Out: out})
	return get(t, b, out.buf.ptr, n*m.rows)
}

// A product with a bias, added to what is there, with and without a norm before.
func TestResidualMatchesPortable(t *testing.T) { checkResidual(t, 3) }

func checkResidual(t *testing.T, n int) {
	t.Helper()
	b := newBackend(t)
	rng := rand.New(rand.NewPCG(3, 4))
	const rows, cols = 70, 64
	set := kernel.Portable()
	for _, post := range []bool{false, true} {
		data := randomWeights(t, rng, quant.Q4_1, rows, cols)
		in, sum, bias, gain := random(rng, n*cols), random(rng, n*rows), random(rng, rows), random(rng, rows)
		want := portableProduct(t, quant.Q4_1, rows, cols, n, data, in)
		for r := range n {
			row := want[r*rows : (r+1)*rows]
			set.Add(row, bias)
			if post {
				set.RMSNorm(row, row, gain, 1e-5)
			}
			set.Add(row, sum[r*rows:(r+1)*rows])
		}
		m, bv := loadMatrix(t, b, quant.Q4_1, rows, cols, data), loadVector(t, b, bias)
		norm := model.Norm{}
		if post {
			norm = model.Norm{Gain: loadVector(t, b, gain), Eps: 1e-5}
		}
		x, from := newTensor(t, b, rows), newTensor(t, b, cols)
		begin(b, n)
		put(t, b, x.buf.ptr, sum)
		put(t, b, from.buf.ptr, in)
		b.Residual(x, from, model.Linear{W: m, B: bv}, norm)
		if d := worst(get(t, b, x.buf.ptr, n*rows), want); d > 2e-6 {
			t.Errorf("post norm %v: off by %g", post, d)
		}
	}
}

func TestEmbedMatchesDecode(t *testing.T) {
	b := newBackend(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for _, typ := range allTypes {
		const rows, cols = 9, 256
		data := randomWeights(t, rng, typ, rows, cols)
		table := make([]float32, rows*cols)
		if err := quant.Decode(typ, table, data); err != nil {
			t.Fatal(err)
		}
		m := loadMatrix(t, b, typ, rows, cols, data)
		x := newTensor(t, b, cols)
		ids := []int32{8, 0, 3}
		b.Begin(model.Batch{{Tokens: ids, Blocks: []int32{0}}})
		b.Embed(x, m, 3)
		got := get(t, b, x.buf.ptr, len(ids)*cols)
		for r, id := range ids {
			want := slices.Clone(table[int(id)*cols : int(id+1)*cols])
			for i := range want {
				want[i] *= 3
			}
			if d := worst(got[r*cols:(r+1)*cols], want); d > 1e-6 {
				t.Errorf("%s row %d: off by %g", typ, id, d)
			}
		}
	}
}

func TestLoadMatrixRefuses(t *testing.T) {
	b := newBackend(t)
	for name, c := range map[string]struct {
		typ        quant.Type
		rows, cols int
		bytes      int
	}{
		"unknown type": {quant.Type(99), 1, 32, 32},
		"no rows":      {quant.F32, 0, 32, 0},
		"part block":   {quant.Q4_0, 1, 33, 18},
		"short":        {quant.Q4_0, 2, 32, 18},
	} {
		if _, err := b.LoadMatrix(c.typ, c.rows, c.cols, make([]byte, c.bytes), model.UseProduct); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The first and the last row of a text get the products of what rounding left of them,
// too; the others do not.
func TestFinerRowsMatchPortable(t *testing.T) {
	inBothOrders(t, func(t *testing.T) {
		const rows, cols = 70, 96
		b := newBackend(t)
		rng := rand.New(rand.NewPCG(27, 28))
		data := randomWeights(t, rng, quant.Q4_1, rows, cols)
		m := loadMatrix(t, b, quant.Q4_1, rows, cols, data)
		lengths := []int{4, 1, 3}
		x := random(rng, 8*cols)
		want := portableProduct(t, quant.Q4_1, rows, cols, 8, data, x)
		var acts kernel.Acts
		acts.Resize(8, cols)
		for _, r := range []int{0, 3, 4, 5, 7} {
			kernel.Portable().Quantize(&acts, r, x[r*cols:(r+1)*cols])
			rest := make([]float32, cols)
			for c := range rest {
				rest[c] = x[r*cols+c] - float32(float32(acts.Q[r*cols+c])*acts.D[(r*cols+c)/32])
			}
			kernel.Portable().Add(want[r*rows:(r+1)*rows], portableProduct(t, quant.Q4_1, rows, cols, 1, data, rest))
		}
		in, out := newTensor(t, b, cols), newTensor(t, b, rows)
		var texts []model.Text
		for _, n := range lengths {
			texts = append(texts, model.Text{Tokens: make([]int32, n)})
		}
		b.BeginTexts(texts)
		put(t, b, in.buf.ptr, x)
		b.Project(in, model.Norm{}, model.Projection{Linear: model.Linear{W: m}, Out: out})
		if d := worst(get(t, b, out.buf.ptr, 8*rows), want); d > 2e-6 {
			t.Errorf("off by %g", d)
		}
	})
}
