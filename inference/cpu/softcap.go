package cpu

import (
	"math"

	"ragd/inference/cpu/kernel"
)

// capped is the step with soft-capped scores, one row at a time: the kernels have
// no cap, and no shipped model uses one.
func (t *attentionTask) capped(st []kernel.SoftmaxState, acc, q []float32, at, n int) {
	dim := t.a.HeadDim
	for i := range st {
		row, sum := q[i*dim:(i+1)*dim], acc[i*dim:(i+1)*dim]
		for j := range n {
			o := at + j*t.kv.stride
			s := t.a.SoftCap * tanh(t.a.Scale*t.dotKey(row, o)/t.a.SoftCap)
			p := advance(t.b.set, &st[i], sum, s)
			t.addValue(sum, p, o)
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

func (t *attentionTask) dotKey(q []float32, at int) float32 {
	if t.b.float32 {
		return t.b.set.Dot(q, t.kv.k32[at:at+len(q)])
	}
	return t.b.set.DotF16(q, t.kv.k16[at:at+len(q)])
}

func (t *attentionTask) addValue(acc []float32, p float32, at int) {
	if t.b.float32 {
		t.b.set.Axpy(acc, p, t.kv.v32[at:at+len(acc)])
		return
	}
	t.b.set.AxpyF16(acc, p, t.kv.v16[at:at+len(acc)])
}

func exp(x float32) float32  { return float32(math.Exp(float64(x))) }
func tanh(x float32) float32 { return float32(math.Tanh(float64(x))) }
