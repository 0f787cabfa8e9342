package kernel

const (
	// attendMax is how many query rows one assembly call takes.
	attendMax = 18
	// attendBlocks is how many runs one assembly call takes.
	attendBlocks = 4
)

// attendCall is a generated step of groups of query rows over count runs of cached
// rows, of which left are still to come, these included.
type attendCall[T uint16 | float32] func(st, acc, q *float32, k, v *T, runs *int, groups, count, left, stride, dim int, scale float32)

// attendTiles are the steps of an instruction set over cached rows of type T. How rows
// are grouped changes no bit, and neither does how many runs come at once.
type attendTiles[T uint16 | float32] struct {
	by    [7]attendCall[T] // by the query rows of a group; nil where there is none
	shape func(left int) (width, groups int)
	// fetch fetches the keys of the first call.
	fetch func(k *T, runs *int, count, dim int)
	lanes int // head dimensions are multiples of it; others are done by other
	other func(st []SoftmaxState, acc, q []float32, k, v []T, runs []Run, stride int, scale float32)
}

// run is Set.AttendTile or Set.AttendTileF32.
func (t *attendTiles[T]) run(st []SoftmaxState, acc, q []float32, k, v []T, runs []Run, stride int, scale float32) {
	dim := len(q) / len(st)
	if dim%t.lanes != 0 {
		t.other(st, acc, q, k, v, runs, stride, scale)
		return
	}
	if len(runs) > 1 { // else there is so little to do that it is not worth it
		t.fetch(&k[0], &runs[0].At, min(attendBlocks, len(runs)), dim)
	}
	for ; len(runs) > 0; runs = runs[min(attendBlocks, len(runs)):] {
		count := min(attendBlocks, len(runs))
		for i := 0; i < len(st); {
			width, groups := t.shape(len(st) - i)
			at := i * dim
			t.by[width](&st[i].Max, &acc[at], &q[at], &k[0], &v[0], &runs[0].At, groups, count, len(runs), stride, dim, scale)
			i += width * groups
		}
	}
}

func avx2AttendF16() *attendTiles[uint16] {
	return &attendTiles[uint16]{
		by:    [7]attendCall[uint16]{1: avx2AttendF16x1, 2: avx2AttendF16x2, 3: avx2AttendF16x3, 4: avx2AttendF16x4},
		shape: attendShape, fetch: avx2FetchF16, lanes: 8, other: portableAttendTile,
	}
}

func avx2AttendF32() *attendTiles[float32] {
	return &attendTiles[float32]{
		by:    [7]attendCall[float32]{1: avx2AttendF32x1, 2: avx2AttendF32x2, 3: avx2AttendF32x3, 4: avx2AttendF32x4},
		shape: attendShape, fetch: avx2FetchF32, lanes: 8, other: portableAttendTileF32,
	}
}

func avx512AttendF16() *attendTiles[uint16] {
	return &attendTiles[uint16]{
		by: [7]attendCall[uint16]{
			1: avx512AttendF16x1, 2: avx512AttendF16x2, 3: avx512AttendF16x3, 4: avx512AttendF16x4, 6: avx512AttendF16x6,
		},
		shape: attendShape512, fetch: avx2FetchF16, lanes: 16, other: avx2AttendF16().run,
	}
}

func avx512AttendF32() *attendTiles[float32] {
	return &attendTiles[float32]{
		by: [7]attendCall[float32]{
			1: avx512AttendF32x1, 2: avx512AttendF32x2, 3: avx512AttendF32x3, 4: avx512AttendF32x4, 6: avx512AttendF32x6,
		},
		shape: attendShape512, fetch: avx2FetchF32, lanes: 16, other: avx2AttendF32().run,
	}
}

func avx2AttendBlock(st *SoftmaxState, acc, q []float32, k, v []uint16, n, stride int, scale float32) {
	if len(q)%8 != 0 {
		portableAttendBlock(st, acc, q, k, v, n, stride, scale)
		return
	}
	run := Run{N: n}
	avx2AttendF16x1(&st.Max, &acc[0], &q[0], &k[0], &v[0], &run.At, 1, 1, 1, stride, len(q), scale)
}

func avx512AttendBlock(st *SoftmaxState, acc, q []float32, k, v []uint16, n, stride int, scale float32) {
	if len(q)%16 != 0 {
		avx2AttendBlock(st, acc, q, k, v, n, stride, scale)
		return
	}
	run := Run{N: n}
	avx512AttendF16x1(&st.Max, &acc[0], &q[0], &k[0], &v[0], &run.At, 1, 1, 1, stride, len(q), scale)
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

// attendShape512 is attendShape on registers of 512 bits, where groups of six are the
// fastest a row.
func attendShape512(left int) (width, groups int) {
	switch {
	case left >= 6:
		return 6, evenly(left/6, attendMax/6)
	case left == 5:
		return 3, 1
	}
	return left, 1
}

// evenly is how many of some groups a call takes when it can take most of them, and
// all calls take about as many.
func evenly(groups, most int) int {
	calls := (groups + most - 1) / most
	return (groups + calls - 1) / calls
}
