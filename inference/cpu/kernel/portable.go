package kernel

import "math"

// Portable is the set in plain Go, the reference for every other one.
func Portable() *Set {
	return &Set{
		Name:          "portable",
		Dot:           portableDot,
		Axpy:          portableAxpy,
		Add:           portableAdd,
		Scale:         portableScale,
		DotF16:        portableDotF16,
		AxpyF16:       portableAxpyF16,
		ToF16:         portableToF16,
		FromF16:       portableFromF16,
		ToQ8:          portableToQ8,
		FromQ8:        portableFromQ8,
		FetchQ8:       func([]int8, []uint16) {},
		AttendBlock:   portableAttendBlock,
		AttendTile:    portableAttendTile,
		AttendTileF32: portableAttendTileF32,
		RMSNorm:       portableRMSNorm,
		LayerNorm:     portableLayerNorm,
		Softmax:       portableSoftmax,
		SiLUMul:       portableSiLUMul,
		GELU:          portableGELU,
		GELUTanhMul:   portableGELUTanhMul,
		RopePairs:     portableRopePairs,
		RopeHalves:    portableRopeHalves,
		Quantize:      portableQuantize,
		MatMul:        portableMatMul,
		MatMulF32:     portableMatMulF32,
	}
}

func portableDot(a, b []float32) float32 {
	b = b[:len(a)]
	var s float32
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

func portableAxpy(y []float32, a float32, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += a * x[i]
	}
}

func portableAdd(y, x []float32) {
	x = x[:len(y)]
	for i := range y {
		y[i] += x[i]
	}
}

func portableScale(y []float32, a float32) {
	for i := range y {
		y[i] *= a
	}
}

func portableDotF16(a []float32, b []uint16) float32 {
	b = b[:len(a)]
	var s float32
	for i, v := range a {
		s += v * f32FromF16(b[i])
	}
	return s
}

func portableAxpyF16(y []float32, a float32, x []uint16) {
	x = x[:len(y)]
	for i := range y {
		y[i] += a * f32FromF16(x[i])
	}
}

func portableRopePairs(x, cos, sin []float32) {
	for i := range len(x) / 2 {
		a, b := x[2*i], x[2*i+1]
		x[2*i] = a*cos[i] - b*sin[i]
		x[2*i+1] = a*sin[i] + b*cos[i]
	}
}

func portableRopeHalves(x, cos, sin []float32) {
	h := len(x) / 2
	for i := range h {
		a, b := x[i], x[i+h]
		x[i] = a*cos[i] - b*sin[i]
		x[i+h] = a*sin[i] + b*cos[i]
	}
}

func exp32(x float32) float32 { return float32(math.Exp(float64(x))) }
