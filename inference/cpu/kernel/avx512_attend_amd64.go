package kernel

// Attention on registers of 512 bits: groups of up to four query rows, or six, and
// head dimensions that are multiples of sixteen. Others are avx2's.

func avx512AttendBlock(st *SoftmaxState, acc, q []float32, k, v []uint16, n, stride int, scale float32) {
	if len(q)%16 != 0 {
		avx2AttendBlock(st, acc, q, k, v, n, stride, scale)
		return
	}
	run := Run{N: n}
	avx512AttendF16x1(&st.Max, &acc[0], &q[0], &k[0], &v[0], &run.At, 1, 1, 1, stride, len(q), scale)
}

func avx512AttendTile(st []SoftmaxState, acc, q []float32, k, v []uint16, runs []Run, stride int, scale float32) {
	dim := len(q) / len(st)
	if dim%16 != 0 {
		avx2AttendTile(st, acc, q, k, v, runs, stride, scale)
		return
	}
	fetchF16(k, runs, dim)
	for ; len(runs) > 0; runs = runs[min(attendBlocks, len(runs)):] {
		run, count := &runs[0].At, min(attendBlocks, len(runs))
		for i := 0; i < len(st); {
			width, groups := attendShape512(len(st) - i)
			s, o := &st[i].Max, i*dim
			switch width {
			case 1:
				avx512AttendF16x1(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			case 2:
				avx512AttendF16x2(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			case 3:
				avx512AttendF16x3(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			case 4:
				avx512AttendF16x4(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			default:
				avx512AttendF16x6(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			}
			i += width * groups
		}
	}
}

func avx512AttendTileF32(st []SoftmaxState, acc, q, k, v []float32, runs []Run, stride int, scale float32) {
	dim := len(q) / len(st)
	if dim%16 != 0 {
		avx2AttendTileF32(st, acc, q, k, v, runs, stride, scale)
		return
	}
	fetchF32(k, runs, dim)
	for ; len(runs) > 0; runs = runs[min(attendBlocks, len(runs)):] {
		run, count := &runs[0].At, min(attendBlocks, len(runs))
		for i := 0; i < len(st); {
			width, groups := attendShape512(len(st) - i)
			s, o := &st[i].Max, i*dim
			switch width {
			case 1:
				avx512AttendF32x1(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			case 2:
				avx512AttendF32x2(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			case 3:
				avx512AttendF32x3(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			case 4:
				avx512AttendF32x4(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			default:
				avx512AttendF32x6(s, &acc[o], &q[o], &k[0], &v[0], run, groups, count, len(runs), stride, dim, scale)
			}
			i += width * groups
		}
	}
}

// attendShape512 is attendShape here, where groups of six are the fastest a row.
func attendShape512(left int) (width, groups int) {
	switch {
	case left >= 6:
		return 6, evenly(left/6, attendMax/6)
	case left == 5:
		return 3, 1
	}
	return left, 1
}
