package kernel

// Attention on registers of 512 bits: groups of six query rows, and head dimensions
// that are multiples of sixteen. The rest is avx2's, which gives the same bits.

// attendSix is the rows of a group.
const attendSix = 6

func avx512AttendTile(st []SoftmaxState, acc, q []float32, k, v []uint16, blocks []int32, from, to int, scale float32) {
	dim, i := len(q)/len(st), 0
	for dim%16 == 0 && len(st)-i >= attendSix {
		groups, o := evenly((len(st)-i)/attendSix, attendMax/attendSix), i*dim
		avx512AttendF16x6(&st[i].Max, &acc[o], &q[o], &k[0], &v[0], &blocks[0], groups, from, to, dim, scale)
		i += attendSix * groups
	}
	if i < len(st) {
		avx2AttendTile(st[i:], acc[i*dim:], q[i*dim:len(st)*dim], k, v, blocks, from, to, scale)
	}
}

func avx512AttendTileF32(st []SoftmaxState, acc, q, k, v []float32, blocks []int32, from, to int, scale float32) {
	dim, i := len(q)/len(st), 0
	for dim%16 == 0 && len(st)-i >= attendSix {
		groups, o := evenly((len(st)-i)/attendSix, attendMax/attendSix), i*dim
		avx512AttendF32x6(&st[i].Max, &acc[o], &q[o], &k[0], &v[0], &blocks[0], groups, from, to, dim, scale)
		i += attendSix * groups
	}
	if i < len(st) {
		avx2AttendTileF32(st[i:], acc[i*dim:], q[i*dim:len(st)*dim], k, v, blocks, from, to, scale)
	}
}
