package kernel

import (
	"fmt"
	"testing"
)

// benchShapes are the products of SmolLM2-135M and of e5-small.
var benchShapes = []struct{ n, k int }{
	{576, 576},
	{192, 576},
	{1536, 576},
	{576, 1536},
	{49152, 576},
	{384, 384},
	{1536, 384},
	{384, 1536},
}

// BenchmarkMatMul reports integer operations (two a multiply-add) and weight
// bytes a second on one thread.
func BenchmarkMatMul(b *testing.B) {
	for _, set := range Sets()[1:] {
		for _, typ := range []Type{Q4_0, Q4_1, Q8_0, Q5_0, Q4_K, Q6_K} {
			for _, s := range benchShapes {
				if lay := layouts[typ]; s.k%lay.cols() == 0 {
					benchMatMul(b, set, typ, s.n, s.k)
				}
			}
		}
	}
}

func benchMatMul(b *testing.B, set *Set, typ Type, n, k int) {
	w := randomMatrix(b, newRand(1), typ, n, k)
	for _, rows := range []int{1, 4, 32, 256} {
		if n*rows > 4<<20 {
			continue
		}
		b.Run(fmt.Sprintf("%s/%s/%dx%d/rows%d", set.Name, typeNames[typ], n, k, rows), func(b *testing.B) {
			a, dst := quantised(newRand(2), rows, k), make([]float32, rows*n)
			for b.Loop() {
				set.MatMul(dst, n, a, 0, rows, w, 0, n)
			}
			rate(b, float64(2*n*k*rows), float64(w.Bytes()))
		})
	}
}

// rate reports operations and bytes of one iteration a nanosecond.
func rate(b *testing.B, ops, bytes float64) {
	ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	b.ReportMetric(ops/ns, "GOP/s")
	b.ReportMetric(bytes/ns, "GB/s")
}

// BenchmarkAttend reports float operations of one head group over 2,048 cached
// rows: 3 query rows is a decode step of SmolLM2, 48 a piece of its prefill.
func BenchmarkAttend(b *testing.B) {
	const dim, depth, heads = 64, 2048, 3
	var runs []Run
	for j := 0; j < depth; j += attendRows {
		runs = append(runs, Run{j * dim * heads, attendRows})
	}
	for _, rows := range []int{1, 3, 48} {
		r, set := newRand(1), Best()
		k, v, q := halves(r, depth*dim*heads), halves(r, depth*dim*heads), normals(r, rows*dim)
		st, acc := make([]SoftmaxState, rows), make([]float32, rows*dim)
		b.Run(fmt.Sprintf("F16/rows%d", rows), func(b *testing.B) {
			for b.Loop() {
				set.AttendTile(st, acc, q, k, v, runs, dim*heads, 0.125)
			}
			rate(b, float64(4*rows*dim*depth), float64(4*dim*depth))
		})
		kw, vw := make([]float32, len(k)), make([]float32, len(v))
		portableFromF16(kw, k)
		portableFromF16(vw, v)
		b.Run(fmt.Sprintf("F32/rows%d", rows), func(b *testing.B) {
			for b.Loop() {
				set.AttendTileF32(st, acc, q, kw, vw, runs, dim*heads, 0.125)
			}
			rate(b, float64(4*rows*dim*depth), float64(8*dim*depth))
		})
	}
}

// BenchmarkMatMulF32 is the product of unquantised weights.
func BenchmarkMatMulF32(b *testing.B) {
	for _, typ := range floatTypes {
		for _, rows := range []int{1, 4, 32} {
			b.Run(fmt.Sprintf("%s/576x576/rows%d", typeNames[typ], rows), func(b *testing.B) {
				r, set, dst := newRand(1), Best(), make([]float32, rows*576)
				w, x := randomMatrix(b, r, typ, 576, 576), normals(r, rows*576)
				for b.Loop() {
					set.MatMulF32(dst, 576, x, 576, 0, rows, w, 0, 576)
				}
				rate(b, float64(2*rows*576*576), float64(w.Bytes()))
			})
		}
	}
}

// BenchmarkVector covers what runs once or twice a layer over a hidden row.
func BenchmarkVector(b *testing.B) {
	const n = 1536
	r, set := newRand(1), Best()
	x, y, z, a := normals(r, n), normals(r, n), normals(r, n), new(Acts)
	a.Resize(1, n)
	for _, k := range []struct {
		name string
		run  func()
	}{
		{"Quantize", func() { set.Quantize(a, 0, x) }},
		{"RMSNorm", func() { set.RMSNorm(y, x, z, 1e-5) }},
		{"LayerNorm", func() { set.LayerNorm(y, x, z, z, 1e-5) }},
		{"Softmax", func() { set.Softmax(y) }},
		{"SiLUMul", func() { set.SiLUMul(y, x, z) }},
		{"GELU", func() { set.GELU(z) }},
		{"GELUTanhMul", func() { set.GELUTanhMul(y, x, z) }},
		{"RopePairs", func() { set.RopePairs(y, x, z) }},
		{"Dot", func() { set.Dot(x, z) }},
	} {
		b.Run(k.name, func(b *testing.B) {
			for b.Loop() {
				k.run()
			}
			rate(b, n, 4*n)
		})
	}
}

// BenchmarkPack is the repacking of weights at load, in weights a nanosecond.
func BenchmarkPack(b *testing.B) {
	for _, typ := range quantTypes {
		b.Run(typeNames[typ], func(b *testing.B) {
			src := randomWeights(newRand(1), typ, 256, 1536)
			m, err := New(typ, 256, 1536)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := m.Fill(0, 256, src); err != nil {
					b.Fatal(err)
				}
			}
			rate(b, 256*1536, float64(len(src)))
		})
	}
}
