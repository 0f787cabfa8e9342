package kernel

import "math"

// attendRows is the largest number of cached rows that one attention call takes.
const attendRows = 16

func portableAttendBlock(st *SoftmaxState, acc, q []float32, k, v []uint16, n, stride int, scale float32) {
	var s [attendRows]float32
	for j := range n {
		s[j] = scale * portableDotF16(q, k[j*stride:])
	}
	portableScale(acc, st.update(s[:n]))
	for j, p := range s[:n] {
		portableAxpyF16(acc, p, v[j*stride:])
	}
}

// update turns scores into weights relative to the new maximum and returns the
// factor by which what was accumulated before shrinks.
func (st *SoftmaxState) update(s []float32) float32 {
	top := st.Max
	for _, v := range s {
		top = max(top, v)
	}
	shrink := float32(0)
	if !math.IsInf(float64(st.Max), -1) {
		shrink = exp32(st.Max - top)
	}
	sum := st.Sum * shrink
	for j, v := range s {
		s[j] = exp32(v - top)
		sum += s[j]
	}
	st.Max, st.Sum = top, sum
	return shrink
}

func portableAttendTile(st []SoftmaxState, acc, q []float32, k, v []uint16, runs []Run, stride int, scale float32) {
	dim := len(q) / len(st)
	for _, run := range runs {
		for i := range st {
			lo, hi := i*dim, (i+1)*dim
			portableAttendBlock(&st[i], acc[lo:hi], q[lo:hi], k[run.At:], v[run.At:], run.N, stride, scale)
		}
	}
}

func portableAttendTileF32(st []SoftmaxState, acc, q, k, v []float32, runs []Run, stride int, scale float32) {
	dim := len(q) / len(st)
	var s [attendRows]float32
	for _, run := range runs {
		for i := range st {
			qi, ai := q[i*dim:(i+1)*dim], acc[i*dim:(i+1)*dim]
			for j := range run.N {
				s[j] = scale * portableDot(qi, k[run.At+j*stride:])
			}
			portableScale(ai, st[i].update(s[:run.N]))
			for j, p := range s[:run.N] {
				portableAxpy(ai, p, v[run.At+j*stride:])
			}
		}
	}
}
