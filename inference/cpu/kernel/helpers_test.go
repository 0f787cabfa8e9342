package kernel

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

var quantTypes = []Type{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K}

var floatTypes = []Type{F32, F16, BF16}

var typeNames = map[Type]string{
	F32: "F32", F16: "F16", BF16: "BF16", Q4_0: "Q4_0", Q4_1: "Q4_1", Q5_0: "Q5_0", Q5_1: "Q5_1",
	Q8_0: "Q8_0", Q4_K: "Q4_K", Q5_K: "Q5_K", Q6_K: "Q6_K",
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

func normals(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func halves(r *rand.Rand, n int) []uint16 {
	x := make([]uint16, n)
	portableToF16(x, normals(r, n))
	return x
}

// randomWeights are rows × cols weights of the type as GGUF stores them: random
// codes and scales, and halves of ordinary size where the format has floats.
func randomWeights(r *rand.Rand, t Type, rows, cols int) []byte {
	switch t {
	case F32:
		p := make([]byte, 0, 4*rows*cols)
		for _, v := range normals(r, rows*cols) {
			p = binary.LittleEndian.AppendUint32(p, math.Float32bits(v))
		}
		return p
	case F16, BF16:
		p := make([]byte, 0, 2*rows*cols)
		for _, v := range normals(r, rows*cols) {
			h := f16FromF32(v)
			if t == BF16 {
				h = uint16(math.Float32bits(v) >> 16)
			}
			p = binary.LittleEndian.AppendUint16(p, h)
		}
		return p
	}
	lay := layouts[t]
	p := make([]byte, rows*cols/lay.cols()*lay.srcLen)
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	for b := 0; b < len(p); b += lay.srcLen {
		block := p[b : b+lay.srcLen]
		d := block[:2]
		if t == Q6_K { // the only one that ends with its scale
			d = block[lay.srcLen-2:]
		}
		binary.LittleEndian.PutUint16(d, f16FromF32(float32(r.NormFloat64())/100))
		if lay.mins {
			binary.LittleEndian.PutUint16(block[2:], f16FromF32(float32(r.NormFloat64())/100))
		}
	}
	return p
}

func randomMatrix(t testing.TB, r *rand.Rand, typ Type, rows, cols int) *Matrix {
	t.Helper()
	m, err := Pack(typ, rows, cols, randomWeights(r, typ, rows, cols))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// quantised packs random activations.
func quantised(r *rand.Rand, rows, cols int) *Acts {
	var a Acts
	a.Resize(rows, cols)
	for i := range rows {
		portableQuantize(&a, i, normals(r, cols))
	}
	return &a
}

// near fails unless got and want differ by at most tol times scale everywhere.
func near(t *testing.T, what string, got, want []float32, scale, tol float64) {
	t.Helper()
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		if d := math.Abs(g - w); !(d <= tol*scale) {
			t.Fatalf("%s: element %d is %g, want %g (off by %.3g, allowed %.3g)", what, i, g, w, d, tol*scale)
		}
	}
}

// same fails unless got and want are equal bit for bit.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %x, want %x", what, i, math.Float32bits(got[i]), math.Float32bits(want[i]))
		}
	}
}

// maxAbs is the largest magnitude, at least 1e-30.
func maxAbs(x []float32) float64 {
	top := 1e-30
	for _, v := range x {
		top = math.Max(top, math.Abs(float64(v)))
	}
	return top
}
