package kernel

import (
	"fmt"
	"testing"
)

// benchShapes are the products of SmolLM2-135M and of e5-small.
var benchShapes = []struct{ n, k int }{
	{576, 576}, {192, 576}, {1536, 576}, {576, 1536}, {49152, 576},
	{384, 384}, {1536, 384}, {384, 1536},
}

// BenchmarkMatMul reports integer operations (two a multiply-add) and weight
// bytes a second on one thread.
func BenchmarkMatMul(b *testing.B) {
	for _, typ := range []Type{Q4_0, Q4_1, Q8_0, Q5_0, Q4_K, Q6_K} {
		for _, s := range benchShapes {
			if lay := layouts[typ]; s.k%lay.cols() != 0 {
				continue
			}
			w := randomMatrix(b, newRand(1), typ, s.n, s.k)
			for _, rows := range []int{1, 4, 32, 256} {
				if s.n*rows > 4<<20 {
					continue
				}
				b.Run(fmt.Sprintf("%s/%dx%d/rows%d", typeNames[typ], s.n, s.k, rows), func(b *testing.B) {
					a, dst, set := quantised(newRand(2), rows, s.k), make([]float32, rows*s.n), Best()
					for b.Loop() {
						set.MatMul(dst, s.n, a, 0, rows, w, 0, s.n)
					}
					rate(b, float64(2*s.n*s.k*rows), float64(w.Bytes()))
				})
			}
		}
	}
}

// rate reports operations and bytes of one iteration a nanosecond.
func rate(b *testing.B, ops, bytes float64) {
	ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(ops/ns, "GOP/s")
	b.ReportMetric(bytes/ns, "GB/s")
}
