package cpu

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"ragd/inference/model"
	"ragd/inference/quant"
)

// productOf returns x + W·in for random weights, which a seed chooses.
func productOf(t *testing.T, b *Backend, seed uint64) func() []float32 {
	const in, out, rows = 256, 192, 150
	r := rand.New(rand.NewPCG(seed, 1))
	b.begin(rows)
	w, _ := b.weights(t, quant.Q4_1, out, in, random(r, out*in))
	start, x := random(r, rows*out), b.filled(t, in, random(r, rows*in))
	dst := b.filled(t, out, start)
	return func() []float32 {
		b.seat.begin()
		defer b.seat.end()
		copy(dst.data, start)
		b.Residual(dst, x, model.Linear{W: w}, model.Norm{})
		return slices.Clone(dst.data)
	}
}

// Two backends that take turns at one pool compute, bit for bit, what each
// computes alone.
func TestSharedPoolChangesNoResult(t *testing.T) {
	pool, err := NewPool(3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	var group sync.WaitGroup
	for seed, background := range []bool{false, true} {
		alone := productOf(t, newBackend(t, Config{Threads: 1}), uint64(seed))()
		shared := productOf(t, newBackend(t, Config{Pool: pool, Background: background}), uint64(seed))
		group.Go(func() {
			for range 200 {
				if !slices.Equal(shared(), alone) {
					t.Errorf("background %v: other values than alone", background)
					return
				}
			}
		})
	}
	group.Wait()
}
