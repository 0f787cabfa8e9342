package kernel

import "math"

// attendMost is the largest number of positions that one attention call takes.
const attendMost = AttendBlocks * AttendKeys

func portableAttendTile(st []SoftmaxState, acc, q []float32, k, v []uint16, blocks []int32, from, to int, scale float32) {
	portableAttend(f32FromF16, st, acc, q, k, v, blocks, from, to, scale)
}

func portableAttendTileF32(st []SoftmaxState, acc, q, k, v []float32, blocks []int32, from, to int, scale float32) {
	portableAttend(func(x float32) float32 { return x }, st, acc, q, k, v, blocks, from, to, scale)
}

func portableAttend[T any](wide func(T) float32, st []SoftmaxState, acc, q []float32, k, v []T, blocks []int32, from, to int, scale float32) {
	dim := len(q) / len(st)
	var s [attendMost]float32
	for i := range st {
		qi, ai := q[i*dim:(i+1)*dim], acc[i*dim:(i+1)*dim]
		for j := from; j < to; j++ {
			at, sum := int(blocks[j/AttendKeys])*AttendKeys*dim+j%AttendKeys, float32(0)
			for d, x := range qi {
				sum += x * wide(k[at+d*AttendKeys])
			}
			s[j] = scale * sum
		}
		portableScale(ai, st[i].update(s[from:to]))
		for j := from; j < to; j++ {
			at := (int(blocks[j/AttendKeys])*AttendKeys + j%AttendKeys) * dim
			for d, x := range v[at : at+dim] {
				ai[d] += s[j] * wide(x)
			}
		}
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
