package cpu

import (
	"math"

	"ragd/inference/cpu/kernel"
)

// capped is the step with soft-capped scores, one row at a time: the kernels have
// no cap, and no shipped model uses one.
func (t *attentionTask) capped(st []kernel.SoftmaxState, acc, q []float32, m *kv, run kernel.Run) {
	dim := t.a.HeadDim
	for i := range st {
		row, sum := q[i*dim:(i+1)*dim], acc[i*dim:(i+1)*dim]
		for j := range run.N {
			o := run.At + j*m.stride
			s := t.a.SoftCap * tanh(t.a.Scale*m.dotKey(t.b.set, row, o)/t.a.SoftCap)
			p := advance(t.b.set, &st[i], sum, s)
			m.addValue(t.b.set, sum, p, o)
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

func (m *kv) dotKey(set *kernel.Set, q []float32, at int) float32 {
	if m.k32 != nil {
		return set.Dot(q, m.k32[at:at+len(q)])
	}
	return set.DotF16(q, m.k16[at:at+len(q)])
}

func (m *kv) addValue(set *kernel.Set, acc []float32, p float32, at int) {
	if m.v32 != nil {
		set.Axpy(acc, p, m.v32[at:at+len(acc)])
		return
	}
	set.AxpyF16(acc, p, m.v16[at:at+len(acc)])
}

func exp(x float32) float32  { return float32(math.Exp(float64(x))) }
func tanh(x float32) float32 { return float32(math.Tanh(float64(x))) }
