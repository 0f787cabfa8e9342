//go:build cuda && cgo

package cuda

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// testConfig names the simulated driver that `make test-cuda` builds.
func testConfig(t testing.TB) Config {
	t.Helper()
	path := os.Getenv("RAGD_CUDA_DRIVER")
	if path == "" {
		t.Fatal("RAGD_CUDA_DRIVER names no driver: run make test-cuda")
	}
	return Config{Library: path}
}

func newBackend(t testing.TB) *Backend {
	t.Helper()
	b, err := New(testConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// inBothOrders runs a test with the threads of a block started from the first and
// from the last: what lacks a barrier differs in one of them.
func inBothOrders(t *testing.T, f func(t *testing.T)) {
	for _, order := range []string{"forward", "reverse"} {
		t.Run(order, func(t *testing.T) {
			t.Setenv("RAGD_SIM_ORDER", order)
			f(t)
		})
	}
}

// begin opens a step of one piece of n rows.
func begin(b *Backend, n int) {
	b.Begin(model.Batch{{Tokens: make([]int32, n), Blocks: make([]int32, ceil(n, model.BlockTokens))}})
}

func newTensor(t testing.TB, b *Backend, width int) *tensor {
	t.Helper()
	x, err := b.NewTensor(width)
	if err != nil {
		t.Fatal(err)
	}
	return x.(*tensor)
}

func put(t testing.TB, b *Backend, p cudrv.Ptr, v []float32) {
	t.Helper()
	if err := b.device.Do(func() error { return cudrv.Upload(p, bytesOf(v)) }); err != nil {
		t.Fatal(err)
	}
}

// get runs what was recorded and reads n values.
func get(t testing.TB, b *Backend, p cudrv.Ptr, n int) []float32 {
	t.Helper()
	if _, err := b.flush(0, 0); err != nil {
		t.Fatal(err)
	}
	v := make([]float32, n)
	if err := b.device.Do(func() error { return cudrv.Download(bytesOf(v), p) }); err != nil {
		t.Fatal(err)
	}
	return v
}

func random(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// randomWeights are rows × cols values of the type as a file has them. The formats
// that cannot be encoded are random bits under small scales.
func randomWeights(t testing.TB, rng *rand.Rand, typ quant.Type, rows, cols int) []byte {
	t.Helper()
	size, err := typ.RowBytes(cols)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, rows*size)
	if quant.Encode(typ, data, random(rng, rows*cols)) == nil {
		return data
	}
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	for at := 0; at < len(data); at += typ.BlockBytes() {
		block := data[at : at+typ.BlockBytes()]
		if typ == quant.Q6_K {
			block = block[208:]
		}
		for i := 1; i < 4 && i < len(block); i += 2 { // f16 in [2⁻⁷, 2⁻⁵)
			block[i] = 0x20 | block[i]&7
		}
	}
	return data
}

// worst is the largest difference of two vectors, relative to the largest value
// wanted; NaN counts as infinitely far.
func worst(got, want []float32) float64 {
	top, d := 1e-30, 0.0
	for i := range want {
		top = max(top, math.Abs(float64(want[i])))
		diff := math.Abs(float64(got[i]) - float64(want[i]))
		if math.IsNaN(diff) {
			diff = math.Inf(1)
		}
		d = max(d, diff)
	}
	return d / top
}

func loadVector(t testing.TB, b *Backend, v []float32) model.Vector {
	t.Helper()
	p, err := b.LoadVector(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func loadMatrix(t testing.TB, b *Backend, typ quant.Type, rows, cols int, data []byte) *matrix {
	t.Helper()
	m, err := b.LoadMatrix(typ, rows, cols, data, model.UseProduct|model.UseLookup)
	if err != nil {
		t.Fatal(err)
	}
	return m.(*matrix)
}
