package kernel

// BlockCols is the number of columns that share a quantisation scale.
const BlockCols = 32

// Acts holds activations quantised for MatMul: rows × cols values in blocks of 32.
type Acts struct {
	Rows, Cols int
	Q          []int8    // rows·cols
	D          []float32 // one scale a block
	S          []float32 // one D·ΣQ a block
	O          []int32   // one −128·ΣQ a block, for weights read as unsigned codes
}

// Resize makes room for rows × cols values, cols being a multiple of BlockCols.
// Memory is reused when it is large enough; the contents are undefined until
// Quantize has filled every row.
func (a *Acts) Resize(rows, cols int) {
	a.Rows, a.Cols = rows, cols
	a.Q = resize(a.Q, rows*cols)
	a.D = resize(a.D, rows*cols/BlockCols)
	a.S = resize(a.S, rows*cols/BlockCols)
	a.O = resize(a.O, rows*cols/BlockCols)
}

// Take makes a row of codes that have one scale; zeros fill it up to Cols.
func (a *Acts) Take(row int, codes []int8, scale float32) {
	q := a.Q[row*a.Cols : (row+1)*a.Cols]
	clear(q[copy(q, codes):])
	blocks := a.Cols / BlockCols
	for b := range blocks {
		sum := int32(0)
		for _, c := range q[b*BlockCols : (b+1)*BlockCols] {
			sum += int32(c)
		}
		at := row*blocks + b
		a.D[at], a.S[at], a.O[at] = scale, scale*float32(sum), -128*sum
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
