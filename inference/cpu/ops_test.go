package cpu

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
	"ragd/inference/quant"
)

func newBackend(t testing.TB, cfg Config) *Backend {
	t.Helper()
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// begin opens a step of one piece with rows tokens and no cache.
func (b *Backend) begin(rows int) {
	b.Begin(model.Batch{{Tokens: make([]int32, rows), Blocks: make([]int32, ceil(rows, model.BlockTokens)), Logits: rows}})
}

func (b *Backend) filled(t testing.TB, width int, x []float32) *tensor {
	t.Helper()
	v, err := b.NewTensor(width)
	if err != nil {
		t.Fatal(err)
	}
	b.sizeTensors()
	copy(v.(*tensor).data, x)
	return v.(*tensor)
}

// Products against the plain sum over decoded weights, for every type and for
// shapes that fill no tile.
func TestProductsOfEveryType(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	types := []quant.Type{quant.F32, quant.F16, quant.BF16, quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0}
	for _, set := range kernel.Sets() {
		for _, typ := range types {
			for _, rows := range []int{1, 3, 70} {
				t.Run(fmt.Sprintf("%s/%s/%d", set.Name, typ, rows), func(t *testing.T) {
					checkProduct(t, r, Config{Threads: 2, Kernels: set}, typ, rows)
				})
			}
		}
	}
}

func checkProduct(t *testing.T, r *rand.Rand, cfg Config, typ quant.Type, rows int) {
	const in, out = 96, 77
	b := newBackend(t, cfg)
	b.begin(rows)
	x, start, bias := random(r, rows*in), random(r, rows*out), random(r, out)
	w, decoded := b.weights(t, typ, out, in, random(r, out*in))
	bv, err := b.LoadVector(bias)
	if err != nil {
		t.Fatal(err)
	}
	dst := b.filled(t, out, start)
	b.Residual(dst, b.filled(t, in, x), model.Linear{W: w, B: bv}, model.Norm{})
	for i := range rows {
		for j := range out {
			want, size := float64(start[i*out+j])+float64(bias[j]), 0.0
			for k := range in {
				p := float64(x[i*in+k]) * float64(decoded[j*in+k])
				want += p
				size += math.Abs(p)
			}
			got := float64(dst.row(i)[j])
			if d := math.Abs(got - want); !(d <= 0.01*size+1e-5) {
				t.Fatalf("row %d, column %d: %g, want %g", i, j, got, want)
			}
		}
	}
}

// weights loads a matrix and returns what its type made of the values.
func (b *Backend) weights(t testing.TB, typ quant.Type, rows, cols int, x []float32) (model.Matrix, []float32) {
	t.Helper()
	size, err := typ.RowBytes(cols)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, rows*size)
	decoded := make([]float32, len(x))
	if err := errors.Join(quant.Encode(typ, data, x), quant.Decode(typ, decoded, data)); err != nil {
		t.Fatal(err)
	}
	m, err := b.LoadMatrix(typ, rows, cols, data, model.UseProduct|model.UseLookup)
	if err != nil {
		t.Fatal(err)
	}
	return m, decoded
}

// A looked-up row is the decoded one, packed for products or not.
func TestLookup(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	b := newBackend(t, Config{Threads: 1})
	for _, typ := range []quant.Type{quant.F32, quant.Q4_0, quant.Q8_0} {
		packed, decoded := b.weights(t, typ, 11, 64, random(r, 11*64))
		size, _ := typ.RowBytes(64)
		data := make([]byte, 11*size)
		if err := quant.Encode(typ, data, decoded); err != nil {
			t.Fatal(err)
		}
		stored, err := b.LoadMatrix(typ, 11, 64, data, model.UseLookup)
		if err != nil {
			t.Fatal(err)
		}
		for row := range 11 {
			a, c := make([]float32, 64), make([]float32, 64)
			packed.(*matrix).row(a, row)
			stored.(*matrix).row(c, row)
			for i, want := range decoded[row*64 : row*64+64] {
				if a[i] != want || math.Abs(float64(c[i]-want)) > 1e-3*math.Abs(float64(want))+1e-3 {
					t.Fatalf("%s row %d: %g packed, %g stored, want %g", typ, row, a[i], c[i], want)
				}
			}
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	b := newBackend(t, Config{Threads: 1})
	for name, load := range map[string]func() error{
		"unknown type": func() error { _, err := b.LoadMatrix(99, 1, 32, nil, model.UseProduct); return err },
		"part block":   func() error { _, err := b.LoadMatrix(quant.Q8_0, 1, 33, nil, model.UseProduct); return err },
		"short data":   func() error { _, err := b.LoadMatrix(quant.F32, 2, 4, make([]byte, 31), model.UseProduct); return err },
		"no rows":      func() error { _, err := b.LoadMatrix(quant.F32, 0, 4, nil, model.UseLookup); return err },
		"no width":     func() error { _, err := b.NewTensor(0); return err },
		"no blocks": func() error {
			_, err := b.NewCache(model.CacheShape{Layers: 1, KVHeads: 1, HeadDim: 4})
			return err
		},
		"endless cache": func() error {
			_, err := b.NewCache(model.CacheShape{Layers: 1 << 20, Blocks: 1 << 40, KVHeads: 64, HeadDim: 128})
			return err
		},
	} {
		if err := load(); !errors.Is(err, ErrLoad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := New(Config{Threads: -1}); err == nil {
		t.Error("-1 threads were accepted")
	}
}

func TestName(t *testing.T) {
	b := newBackend(t, Config{Threads: 3, Kernels: kernel.Portable(), Float32: true})
	if got := b.Name(); got != "cpu/portable/float32, 3 threads" {
		t.Errorf("name %q", got)
	}
}
