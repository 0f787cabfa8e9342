package kernel

// The attention kernels take groups of up to four query rows, and head
// dimensions that are multiples of eight; the grouping changes no bit, and neither
// does how many runs come at once.

const (
	// attendMax is how many query rows one assembly call takes.
	attendMax = 18
	// attendBlocks is how many runs one assembly call takes.
	attendBlocks = 4
)

func avx2AttendBlock(st *SoftmaxState, acc, q []float32, k, v []uint16, n, stride int, scale float32) {
	if len(q)%8 != 0 {
		portableAttendBlock(st, acc, q, k, v, n, stride, scale)
		return
	}
	run := Run{N: n}
	avx2AttendF16x1(&st.Max, &acc[0], &q[0], &k[0], &v[0], &run.At, 1, 1, 1, stride, len(q), scale)
}

func avx2AttendTile(st []SoftmaxState, acc, q []float32, k, v []uint16, runs []Run, stride int, scale float32) {
	dim := len(q) / len(st)
	if dim%8 != 0 {
		portableAttendTile(st, acc, q, k, v, runs, stride, scale)
		return
	}
	fetchF16(k, runs, dim)
	for ; len(runs) > 0; runs = runs[min(attendBlocks, len(runs)):] {
		run, count := &runs[0].At, min(attendBlocks, len(runs))
		for i := 0; i < len(st); {
			width, groups := attendShape(len(st) - i)
			s, o := &st[i].Max, i*dim
			switch width {
			case 1:
				avx2AttendF16x1(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			case 2:
				avx2AttendF16x2(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			case 3:
				avx2AttendF16x3(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			default:
				avx2AttendF16x4(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			}
			i += width * groups
		}
	}
}

func avx2AttendTileF32(st []SoftmaxState, acc, q, k, v []float32, runs []Run, stride int, scale float32) {
	dim := len(q) / len(st)
	if dim%8 != 0 {
		portableAttendTileF32(st, acc, q, k, v, runs, stride, scale)
		return
	}
	fetchF32(k, runs, dim)
	for ; len(runs) > 0; runs = runs[min(attendBlocks, len(runs)):] {
		run, count := &runs[0].At, min(attendBlocks, len(runs))
		for i := 0; i < len(st); {
			width, groups := attendShape(len(st) - i)
			s, o := &st[i].Max, i*dim
			switch width {
			case 1:
				avx2AttendF32x1(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			case 2:
				avx2AttendF32x2(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			case 3:
				avx2AttendF32x3(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			default:
				avx2AttendF32x4(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			}
			i += width * groups
		}
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

// evenly is how many of some groups a call takes when it can take most of them, and
// all calls take about as many.
func evenly(groups, most int) int {
	calls := (groups + most - 1) / most
	return (groups + calls - 1) / calls
}

// fetchF16 fetches the keys of the first call, unless there is so little to do that it
// is not worth it.
func fetchF16(k []uint16, runs []Run, dim int) {
	if len(runs) > 1 {
		avx2FetchF16(&k[0], &runs[0].At, min(attendBlocks, len(runs)), dim)
	}
}

// fetchF32 is fetchF16 for float32 keys.
func fetchF32(k []float32, runs []Run, dim int) {
	if len(runs) > 1 {
		avx2FetchF32(&k[0], &runs[0].At, min(attendBlocks, len(runs)), dim)
	}
}
