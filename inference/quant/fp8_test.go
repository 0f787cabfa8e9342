package quant

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The values that the Open Compute Project's "8-bit Floating Point Specification (OFP8)"
// 1.0 lists for e4m3.
func TestE4M3Values(t *testing.T) {
	for code, want := range map[byte]float64{
		0x00: 0, 0x01: 0x1p-9, 0x07: 0.875 * 0x1p-6, 0x08: 0x1p-6, 0x38: 1, 0x39: 1.125, 0x7e: 448, 0xfe: -448, 0xb8: -1,
	} {
		if got := fromE4M3(code); got != want {
			t.Errorf("code %#x is %g, want %g", code, got, want)
		}
	}
	if !math.IsNaN(fromE4M3(0x7f)) || !math.IsNaN(fromE4M3(0xff)) || !math.Signbit(fromE4M3(0x80)) {
		t.Error("NaN or the negative zero is wrong")
	}
}

// nearestE4M3 tries all codes; of two that are as near it takes the even one.
func nearestE4M3(v float64) byte {
	best, distance := byte(0), math.Inf(1)
	for code := range byte(0x7f) {
		d := math.Abs(fromE4M3(code) - math.Abs(v))
		if d < distance || d == distance && code%2 == 0 {
			best, distance = code, d
		}
	}
	if math.Signbit(v) {
		best |= 0x80
	}
	return best
}

func TestE4M3IsNearest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for code := range byte(0x7e) {
		a, b := fromE4M3(code), fromE4M3(code+1)
		for _, v := range []float64{a, (a + b) / 2, -(a + b) / 2, a + (b-a)*rng.Float64(), math.Nextafter((a+b)/2, 0), math.Nextafter((a+b)/2, 500)} {
			if got, want := e4m3(v), nearestE4M3(v); got != want {
				t.Errorf("%g has code %#x, want %#x", v, got, want)
			}
		}
	}
}

// Blocks of all magnitudes come back within half a step of their largest value's
// exponent, and the largest one is never clipped.
func TestFP8Blocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	src, dst, block := make([]float32, 32), make([]float32, 32), make([]byte, FP8.BlockBytes())
	for e := -126; e <= 127; e++ {
		top := 0.0
		for i := range src {
			src[i] = float32(math.Ldexp(2*rng.Float64()-1, e))
			top = math.Max(top, math.Abs(float64(src[i])))
		}
		if err := Encode(FP8, block, src); err != nil {
			t.Fatal(err)
		}
		if err := Decode(FP8, dst, block); err != nil {
			t.Fatal(err)
		}
		for i := range src {
			if d := math.Abs(float64(dst[i]) - float64(src[i])); d > top/16 {
				t.Fatalf("2^%d: %g came back as %g", e, src[i], dst[i])
			}
		}
		if code := block[32]; int(code)-scaleBias < e-10 && e > -110 {
			t.Fatalf("2^%d: scale 2^%d", e, int(code)-scaleBias)
		}
	}
	clear(src)
	src[3] = 1.9 // more than 448 times the power of two that OCP's rule would take
	if err := Encode(FP8, block, src); err != nil || block[32] != scaleBias-7 || block[3] != nearestE4M3(1.9*128) {
		t.Errorf("%x, %v", block, err)
	}
	for _, odd := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
		src[3] = odd
		if err := Encode(FP8, block, src); err != nil || Decode(FP8, dst, block) != nil || dst[0] == dst[0] {
			t.Errorf("%v: %x", odd, block)
		}
	}
	clear(src)
	if err := Encode(FP8, block, src); err != nil || Decode(FP8, dst, block) != nil || dst[0] != 0 {
		t.Errorf("zeros: %x", block)
	}
}
