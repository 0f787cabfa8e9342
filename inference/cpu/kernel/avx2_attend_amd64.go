package kernel

// The attention kernels take groups of up to four query rows, and head
// dimensions that are multiples of eight; the grouping changes no bit.

// attendMax is how many query rows one assembly call takes.
const attendMax = 24

func avx2AttendTile(st []SoftmaxState, acc, q []float32, k, v []uint16, blocks []int32, from, to int, scale float32) {
	dim := len(q) / len(st)
	if dim%8 != 0 {
		portableAttendTile(st, acc, q, k, v, blocks, from, to, scale)
		return
	}
	for i := 0; i < len(st); {
		width, groups := attendShape(len(st) - i)
		s, o := &st[i].Max, i*dim
		switch width {
		case 1:
			avx2AttendF16x1(s, &acc[o], &q[o], &k[0], &v[0], &blocks[0], groups, from, to, dim, scale)
		case 2:
			avx2AttendF16x2(s, &acc[o], &q[o], &k[0], &v[0], &blocks[0], groups, from, to, dim, scale)
		case 3:
			avx2AttendF16x3(s, &acc[o], &q[o], &k[0], &v[0], &blocks[0], groups, from, to, dim, scale)
		case 4:
			avx2AttendF16x4(s, &acc[o], &q[o], &k[0], &v[0], &blocks[0], groups, from, to, dim, scale)
		}
		i += width * groups
	}
}

func avx2AttendTileF32(st []SoftmaxState, acc, q, k, v []float32, blocks []int32, from, to int, scale float32) {
	dim := len(q) / len(st)
	if dim%8 != 0 {
		portableAttendTileF32(st, acc, q, k, v, blocks, from, to, scale)
		return
	}
	for i := 0; i < len(st); {
		width, groups := attendShape(len(st) - i)
		s, o := &st[i].Max, i*dim
		switch width {
		case 1:
			avx2AttendF32x1(s, &acc[o], &q[o], &k[0], &v[0], &blocks[0], groups, from, to, dim, scale)
		case 2:
			avx2AttendF32x2(s, &acc[o], &q[o], &k[0], &v[0], &blocks[0], groups, from, to, dim, scale)
		case 3:
			avx2AttendF32x3(s, &acc[o], &q[o], &k[0], &v[0], &blocks[0], groups, from, to, dim, scale)
		case 4:
			avx2AttendF32x4(s, &acc[o], &q[o], &k[0], &v[0], &blocks[0], groups, from, to, dim, scale)
		}
		i += width * groups
	}
}

// attendShape is the width and number of the groups that a call takes of the
// rows left. Groups of three are the fastest a row; a call's worth of them is
// spread evenly over the calls needed.
func attendShape(left int) (width, groups int) {
	if left <= 4 {
		return left, 1
	}
	return 3, evenly(left/3, attendMax/3)
}

// evenly is how many of n a call takes if none takes more than most and all take
// about as many.
func evenly(n, most int) int {
	calls := (n + most - 1) / most
	return (n + calls - 1) / calls
}
