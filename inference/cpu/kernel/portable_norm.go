package kernel

import "math"

// The means of the portable norms are summed in float64.

func portableRMSNorm(dst, x, w []float32, eps float32) {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	r := float32(1 / math.Sqrt(sum/float64(len(x))+float64(eps)))
	for i, v := range x {
		dst[i] = v * r * w[i]
	}
}

func portableLayerNorm(dst, x, w, b []float32, eps float32) {
	var sum, sq float64
	for _, v := range x {
		sum += float64(v)
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		sq += (float64(v) - mean) * (float64(v) - mean)
	}
	r := float32(1 / math.Sqrt(sq/float64(len(x))+float64(eps)))
	for i, v := range x {
		dst[i] = (v-float32(mean))*r*w[i] + b[i]
	}
}

func portableSoftmax(x []float32) {
	if len(x) == 0 {
		return
	}
	top := x[0]
	for _, v := range x[1:] {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		x[i] = exp32(v - top)
		sum += x[i]
	}
	portableScale(x, 1/sum)
}

func portableSiLUMul(dst, gate, up []float32) {
	for i, g := range gate {
		dst[i] = g / (1 + exp32(-g)) * up[i]
	}
}

func portableGELU(x []float32) {
	for i, v := range x {
		x[i] = float32(0.5 * float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)))
	}
}

// portableGELUTanhMul uses 0.5x(1+tanh(√(2/π)(x+0.044715x³))) (arXiv 1606.08415).
func portableGELUTanhMul(dst, gate, up []float32) {
	for i, v := range gate {
		x := float64(v)
		t := math.Tanh(math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x))
		dst[i] = float32(0.5*x*(1+t)) * up[i]
	}
}
