package cpu_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/cpu/kernel"
)

// TestRowProducts compares every kernel set with float64 products, at widths that are
// no whole blocks and with values at both ends of int8.
func TestRowProducts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	for _, set := range kernel.Sets() {
		for _, dim := range []int{1, 31, 32, 48, 384} {
			for _, n := range []int{1, 7, 8, 9, 33} {
				rows := make([]float32, n*dim)
				for i := range rows {
					rows[i] = float32(rng.NormFloat64()) / float32(math.Sqrt(float64(dim)))
				}
				p, err := cpu.NewRowProducts(set, rows, dim)
				if err != nil {
					t.Fatal(err)
				}
				// The second call reuses memory of the first.
				for _, m := range []int{65, 1, 3} {
					checkProducts(t, set.Name, p, rows, dim, m, rng)
				}
			}
		}
	}
}

func checkProducts(t *testing.T, set string, p *cpu.RowProducts, rows []float32, dim, m int, rng *rand.Rand) {
	t.Helper()
	values, scales := make([]int8, m*dim), make([]float32, m)
	for i := range values {
		values[i] = int8(rng.IntN(255) - 127)
	}
	for i := range scales {
		scales[i] = float32(rng.Float64()) / 127 / float32(math.Sqrt(float64(dim)))
	}
	n := len(rows) / dim
	dst := make([]float32, m*n)
	if err := p.Multiply(dst, values, scales); err != nil {
		t.Fatal(err)
	}
	for i := range m {
		for j := range n {
			want := 0.0
			for k := range dim {
				want += float64(values[i*dim+k]) * float64(scales[i]) * float64(rows[j*dim+k])
			}
			// q8_0 rounds the prepared rows to 1/127 of the largest of 32 values.
			if d := math.Abs(float64(dst[i*n+j]) - want); d > 0.02 {
				t.Fatalf("%s, %d values: row %d with %d is off by %g of %g", set, dim, i, j, d, want)
			}
		}
	}
}

func TestRowProductsErrors(t *testing.T) {
	for _, c := range []struct{ values, dim int }{{0, 4}, {7, 4}, {4, 0}} {
		if _, err := cpu.NewRowProducts(nil, make([]float32, c.values), c.dim); !errors.Is(err, cpu.ErrRows) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	p, err := cpu.NewRowProducts(nil, make([]float32, 8), 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dst, values, scales int }{{4, 7, 2}, {3, 8, 2}, {2, 8, 2}} {
		if err := p.Multiply(make([]float32, c.dst), make([]int8, c.values), make([]float32, c.scales)); !errors.Is(err, cpu.ErrRows) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := p.Multiply(nil, nil, nil); err != nil {
		t.Errorf("no rows: %v", err)
	}
}

func BenchmarkRowProducts(b *testing.B) {
	const dim, question, passage = 384, 20, 250
	p, err := cpu.NewRowProducts(nil, make([]float32, question*dim), dim)
	if err != nil {
		b.Fatal(err)
	}
	values, scales, dst := make([]int8, passage*dim), make([]float32, passage), make([]float32, passage*question)
	b.Run("kernel", func(b *testing.B) {
		for b.Loop() {
			if err := p.Multiply(dst, values, scales); err != nil {
				b.Fatal(err)
			}
		}
	})
	codes := make([]int8, question*dim)
	b.Run("plain Go", func(b *testing.B) {
		for b.Loop() {
			for i := range passage {
				row := values[i*dim : (i+1)*dim]
				for j := range question {
					q, sum := codes[j*dim:(j+1)*dim], int32(0)
					for k, v := range row {
						sum += int32(v) * int32(q[k])
					}
					dst[i*question+j] = float32(sum) * scales[i]
				}
			}
		}
	})
}
