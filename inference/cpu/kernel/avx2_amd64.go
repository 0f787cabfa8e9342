package kernel

// avx2 needs AVX2, FMA and F16C.
func avx2() *Set {
	return &Set{
		Name:          "avx2",
		Dot:           avx2Dot,
		Axpy:          avx2Axpy,
		Add:           avx2Add,
		Scale:         avx2Scale,
		DotF16:        avx2DotHalf,
		AxpyF16:       avx2AxpyHalf,
		ToF16:         avx2Narrow,
		FromF16:       avx2Widen,
		ToQ8:          avx2NarrowQ8,
		FromQ8:        avx2WidenQ8,
		FetchQ8:       avx2BringQ8,
		AttendBlock:   avx2AttendBlock,
		AttendTile:    avx2AttendF16().run,
		AttendTileF32: avx2AttendF32().run,
		RMSNorm:       avx2RMSNorm,
		LayerNorm:     avx2LayerNorm,
		Softmax:       avx2Softmax,
		SiLUMul:       avx2SiLUMul,
		GELU:          avx2GELU,
		GELUTanhMul:   avx2GELUTanhMul,
		RopePairs:     avx2Pairs,
		RopeHalves:    avx2RopeHalves,
		Quantize:      avx2QuantizeRow,
		MatMul:        avx2MatMul,
		MatMulF32:     avx2MatMulF32,
	}
}

// The kernels over halves take whole vectors of eight; the rest is done here.

func avx2DotHalf(a []float32, b []uint16) float32 {
	n := len(a) / 8
	if n == 0 {
		return portableDotF16(a, b)
	}
	return avx2DotF16(&a[0], &b[0], n) + portableDotF16(a[8*n:], b[8*n:])
}

func avx2AxpyHalf(y []float32, a float32, x []uint16) {
	n := len(y) / 8
	if n > 0 {
		avx2AxpyF16(&y[0], a, &x[0], n)
	}
	portableAxpyF16(y[8*n:], a, x[8*n:])
}

func avx2Narrow(dst []uint16, src []float32) {
	n := len(src) / 8
	if n > 0 {
		avx2ToF16(&dst[0], &src[0], n)
	}
	portableToF16(dst[8*n:], src[8*n:])
}

func avx2Widen(dst []float32, src []uint16) {
	n := len(src) / 8
	if n > 0 {
		avx2FromF16(&dst[0], &src[0], n)
	}
	portableFromF16(dst[8*n:], src[8*n:])
}

func avx2Pairs(x, cos, sin []float32) {
	n := len(x) / 8
	if n > 0 {
		avx2RopePairs(&x[0], &cos[0], &sin[0], n)
	}
	portableRopePairs(x[8*n:], cos[4*n:], sin[4*n:])
}

func avx2QuantizeRow(a *Acts, row int, x []float32) {
	blocks := a.Cols / BlockCols
	if blocks == 0 {
		return
	}
	_ = x[a.Cols-1]
	avx2Quantize(&a.Q[row*a.Cols], &a.D[row*blocks], &a.S[row*blocks], &a.O[row*blocks], &x[0], blocks)
}

func avx2NarrowQ8(q []int8, d []uint16, x []float32) {
	if n := len(d); n > 0 {
		_, _ = q[n*BlockCols-1], x[n*BlockCols-1]
		avx2ToQ8(&q[0], &d[0], &x[0], n)
	}
}

func avx2WidenQ8(dst []float32, q []int8, d []uint16) {
	if n := len(d); n > 0 {
		_, _ = q[n*BlockCols-1], dst[n*BlockCols-1]
		avx2FromQ8(&dst[0], &q[0], &d[0], n)
	}
}

func avx2BringQ8(q []int8, d []uint16) {
	if n := len(d); n > 0 {
		_ = q[n*BlockCols-1]
		avx2FetchQ8(&q[0], &d[0], n)
	}
}
