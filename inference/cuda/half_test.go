//go:build cuda && cgo

package cuda

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ragd/inference/quant"
)

// halfTypes are the weights that products in half precision take at 8.0.
var halfTypes = allTypes[1:]

// Products in half precision are what kernel/half.cuh says of activations and
// kernel/half.cu of weights, for numbers of rows, columns and activation rows around what
// tiles, rounds, spans and their groups take. A row has the same bits whatever the others
// and the kernel.
func TestHalfProductsMatchDefinition(t *testing.T) {
	onTensorCores(t)
	inBothOrders(t, func(t *testing.T) {
		b := newBackend(t)
		rng := rand.New(rand.NewPCG(31, 32))
		for _, typ := range halfTypes {
			for _, shape := range [][2]int{{5, 32}, {17, 256}, {40, 2336}} {
				rows, cols := shape[0], ceil(shape[1], typ.BlockSize())*typ.BlockSize()
				data := randomWeights(t, rng, typ, rows, cols)
				m := loadMatrix(t, b, typ, rows, cols, data)
				if m.reads != asHalves {
					t.Fatalf("%s is not multiplied in half precision", typ)
				}
				const most = 66
				x := random(rng, most*cols)
				for i := range x {
					x[i] *= float32(math.Ldexp(1, i/cols%40-20)) // rows of other magnitudes
				}
				b.manyFrom = 1
				all := runProduct(t, b, m, x, most)
				if d := worstRow(all, halfProduct(t, typ, rows, cols, data, x), rows); d > 1e-5 {
					t.Errorf("%s %d × %d: off by %g", typ, rows, cols, d)
				}
				for _, n := range []int{most, 33, 32, 9, 8, 1} {
					b.manyFrom = 1 << 20
					if got := runProduct(t, b, m, x[:n*cols], n); !slices.Equal(got, all[:n*rows]) {
						t.Errorf("%s %d × %d, %d rows: other bits", typ, rows, cols, n)
					}
				}
			}
		}
	})
}

// What half precision costs, beside products of the very values: less than 2^-10 of the
// largest, also where minima and codes nearly cancel.
func TestHalfProductsAreClose(t *testing.T) {
	onTensorCores(t)
	b := newBackend(t)
	rng := rand.New(rand.NewPCG(33, 34))
	const rows, cols, n = 32, 1024, 3
	for _, typ := range halfTypes {
		data := randomWeights(t, rng, typ, rows, cols)
		table := make([]float32, rows*cols)
		if err := quant.Decode(typ, table, data); err != nil {
			t.Fatal(err)
		}
		x := random(rng, n*cols)
		x[5] = 3000 // an outlier costs its neighbours nothing
		got := runProduct(t, b, loadMatrix(t, b, typ, rows, cols, data), x, n)
		d := worstRow(got, floatProduct(table, x, rows, cols), rows)
		t.Logf("%s: off by %.2g", typ, d)
		if d > 1e-3 {
			t.Errorf("%s: off by %g", typ, d)
		}
	}
}

// Rows of activations with values that f16 cannot have: an infinity and NaN show, and
// large and tiny rows are what they are.
func TestHalfProductsKeepTheRange(t *testing.T) {
	onTensorCores(t)
	b := newBackend(t)
	const rows, cols = 16, 512
	weights := make([]float32, rows*cols)
	for i := range weights {
		weights[i] = 1e-20 // bfloat16 goes there
	}
	data := make([]byte, 2*len(weights))
	if err := quant.Encode(quant.BF16, data, weights); err != nil {
		t.Fatal(err)
	}
	m := loadMatrix(t, b, quant.BF16, rows, cols, data)
	for name, c := range map[string]struct{ value, want float64 }{
		"large": {1e30, cols * 1e10}, "tiny": {1e-30, 0}, "zero": {0, 0},
		"infinite": {math.Inf(1), math.NaN()}, "NaN": {math.NaN(), math.NaN()},
	} {
		x := make([]float32, cols)
		for i := range x {
			x[i] = float32(c.value)
		}
		got := float64(runProduct(t, b, m, x, 1)[0])
		if math.IsNaN(got) != math.IsNaN(c.want) || math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("%s: %g, not %g", name, got, c.want)
		}
	}
}

// halfProduct is the product of rounded weights and activations.
func halfProduct(t *testing.T, typ quant.Type, rows, cols int, data []byte, x []float32) []float32 {
	t.Helper()
	weights := halfWeights(t, typ, rows, cols, data)
	rounded := make([]float32, 0, len(x))
	for row := range slices.Chunk(x, cols) {
		for span := range slices.Chunk(row, halfSpan) {
			rounded = append(rounded, asHalf(span)...)
		}
	}
	return floatProduct(weights, rounded, rows, cols)
}

// halfWeights are the weights as kernel/half.cu has them: those of codes are rounded to
// f16 with their scale and their minimum rounded before.
func halfWeights(t *testing.T, typ quant.Type, rows, cols int, data []byte) []float32 {
	t.Helper()
	weights := make([]float32, rows*cols)
	p, err := pack(typ, rows, cols, data)
	if err != nil {
		t.Fatal(err)
	}
	if p.format.bits == 0 {
		if err := quant.Decode(typ, weights, data); err != nil {
			t.Fatal(err)
		}
		return weights
	}
	factor := math.Ldexp(1, exponentFor(p.bound()))
	for block := range rows * cols / 32 {
		for j := range 32 {
			code, scale, low := p.code(block, j)
			w := halfOf(code*halfOf(scale*factor) + halfOf(low*factor))
			weights[32*block+j] = float32(w / factor)
		}
	}
	return weights
}

// code is one of a block, with its scale and its minimum.
func (p *planes) code(block, j int) (code, scale, low float64) {
	at := func(plane, i int) float64 {
		return float64(quant.F16ToF32(binary.LittleEndian.Uint16(p.data[plane+2*i:])))
	}
	f, header := p.format, block
	if f.scales > 0 {
		header /= 8
	}
	if scale = at(p.d, header); f.name == "q4_0" {
		low = -8 * scale
	}
	if f.min {
		low = at(p.m, header)
	}
	switch f.scales {
	case 1:
		scale *= float64(p.data[p.s+block])
		low *= -float64(p.data[p.ms+block])
	case 2:
		scale *= float64(int8(p.data[p.s+2*block+j/16]))
	}
	if f.bits == 8 {
		return float64(int8(p.data[32*block+j])), scale, low
	}
	return float64(p.data[16*block+j%16] >> (j / 16 * 4) & 15), scale, low
}

// halfOf is what rounding to f16 leaves of a value.
func halfOf(v float64) float64 { return float64(quant.F16ToF32(quant.F32ToF16(float32(v)))) }

// asHalf rounds values to f16 under a power of two that they share.
func asHalf(v []float32) []float32 {
	top := 0.0
	for _, x := range v {
		top = max(top, math.Abs(float64(x)))
	}
	e := exponentFor(top)
	out := make([]float32, len(v))
	for i, x := range v {
		h := quant.F32ToF16(float32(math.Ldexp(float64(x), e)))
		out[i] = float32(math.Ldexp(float64(quant.F16ToF32(h)), -e))
	}
	return out
}

// floatProduct is x·Wᵀ in float64.
func floatProduct(w, x []float32, rows, cols int) []float32 {
	var out []float32
	for in := range slices.Chunk(x, cols) {
		for r := range rows {
			sum := 0.0
			for c, v := range in {
				sum += float64(w[r*cols+c]) * float64(v)
			}
			out = append(out, float32(sum))
		}
	}
	return out
}

// worstRow is the worst of rows of so many values.
func worstRow(got, want []float32, width int) float64 {
	d := 0.0
	for i := 0; i < len(want); i += width {
		d = max(d, worst(got[i:i+width], want[i:i+width]))
	}
	return d
}
