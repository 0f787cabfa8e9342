package cpu

import (
	"math"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
)

// capped is the step with soft-capped scores, one row at a time: the kernels have
// no cap, and no shipped model uses one.
func (t *attentionTask) capped(st []kernel.SoftmaxState, acc, q []float32, c chunk, from, to int) {
	dim := t.a.HeadDim
	for i := range st {
		row, sum := q[i*dim:(i+1)*dim], acc[i*dim:(i+1)*dim]
		for j := from; j < to; j++ {
			at, pos := c.at+int(c.blocks[j/model.BlockTokens])*model.BlockTokens*dim, j%model.BlockTokens
			s := t.a.SoftCap * tanh(t.a.Scale*dotKey(row, c.kv.k32[at+pos:])/t.a.SoftCap)
			p := advance(t.b.set, &st[i], sum, s)
			t.b.set.Axpy(sum, p, c.kv.v32[at+pos*dim:][:dim])
		}
	}
}

// advance puts one score into the running softmax and returns its weight.
func advance(set *kernel.Set, st *kernel.SoftmaxState, acc []float32, s float32) float32 {
	if s > st.Max {
		shrink := exp(st.Max - s)
		set.Scale(acc, shrink)
		st.Sum *= shrink
		st.Max = s
	}
	p := exp(s - st.Max)
	st.Sum += p
	return p
}

// dotKey is the product with a key that begins a column.
func dotKey(q, k []float32) float32 {
	sum := float32(0)
	for d, x := range q {
		sum += x * k[d*model.BlockTokens]
	}
	return sum
}

func exp(x float32) float32  { return float32(math.Exp(float64(x))) }
func tanh(x float32) float32 { return float32(math.Tanh(float64(x))) }
