//go:build cuda && cgo

package cuda

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"ragd/inference/cpu/kernel"
	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

func TestNormsMatchPortable(t *testing.T) {
	inBothOrders(t, func(t *testing.T) {
		b := newBackend(t)
		rng := rand.New(rand.NewPCG(7, 8))
		set := kernel.Portable()
		for _, width := range []int{1, 31, 64, 576, 1000} {
			const n = 3
			x, gain, shift := random(rng, n*width), random(rng, width), random(rng, width)
			for _, layer := range []bool{false, true} {
				want := make([]float32, n*width)
				norm := model.Norm{Gain: loadVector(t, b, gain), Eps: 1e-5}
				if layer {
					norm.Shift = loadVector(t, b, shift)
				}
				for r := range n {
					at, to := x[r*width:(r+1)*width], want[r*width:(r+1)*width]
					if layer {
						set.LayerNorm(to, at, gain, shift, 1e-5)
					} else {
						set.RMSNorm(to, at, gain, 1e-5)
					}
				}
				in := newTensor(t, b, width)
				begin(b, n)
				put(t, b, in.buf.ptr, x)
				b.normInPlace(in.buf.ptr, width, norm)
				if d := worst(get(t, b, in.buf.ptr, n*width), want); d > 2e-6 && width > 1 {
					t.Errorf("width %d, layer norm %v: off by %g", width, layer, d)
				}
			}
		}
	})
}

// Quantising gives the portable kernel's bits, also for blocks of zeros, of values
// too small for a scale and with an infinity.
func TestQuantizeMatchesPortable(t *testing.T) {
	inBothOrders(t, func(t *testing.T) {
		b := newBackend(t)
		rng := rand.New(rand.NewPCG(9, 10))
		for _, width := range []int{32, 96, 576, 1536} {
			const n = 2
			x := random(rng, n*width)
			clear(x[:32])
			for i := range 32 {
				x[width-32+i] = 1e-38
			}
			x[width] = float32(math.Inf(1))
			var want kernel.Acts
			want.Resize(n, width)
			for r := range n {
				kernel.Portable().Quantize(&want, r, x[r*width:(r+1)*width])
			}
			in := newTensor(t, b, width)
			begin(b, n)
			put(t, b, in.buf.ptr, x)
			b.prepare(n, width, &matrix{reads: asCodes})
			b.normalise(in.buf.ptr, model.Norm{}, 0)
			to := b.input.to
			d, s := get(t, b, to[2], n*width/32), get(t, b, to[3], n*width/32)
			q := codes(t, b, to[1], n*width)
			if !slices.Equal(q, want.Q) {
				t.Errorf("width %d: codes differ", width)
			}
			for i := range d {
				if math.Float32bits(d[i]) != math.Float32bits(want.D[i]) || s[i] != want.S[i] && !math.IsNaN(float64(want.S[i])) {
					t.Errorf("width %d, block %d: scale %g and sum %g, not %g and %g", width, i, d[i], s[i], want.D[i], want.S[i])
				}
			}
		}
	})
}

func codes(t *testing.T, b *Backend, p cudrv.Ptr, n int) []int8 {
	t.Helper()
	v := make([]int8, n)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), n)
	if err := b.device.Do(func() error { return cudrv.Download(raw, p) }); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestActivationsMatchPortable(t *testing.T) {
	b := newBackend(t)
	rng := rand.New(rand.NewPCG(11, 12))
	set := kernel.Portable()
	for _, width := range []int{7, 96, 1536} {
		const n = 2
		gate, up := random(rng, n*width), random(rng, n*width)
		for i := range gate {
			gate[i] *= 4
		}
		for act, apply := range map[int]func(dst []float32){
			actSiLU:     func(dst []float32) { set.SiLUMul(dst, gate, up) },
			actGELUTanh: func(dst []float32) { set.GELUTanhMul(dst, gate, up) },
			actGELU:     func(dst []float32) { copy(dst, gate); set.GELU(dst) },
			actTanh: func(dst []float32) {
				for i := range dst {
					dst[i] = float32(math.Tanh(float64(gate[i])))
				}
			},
		} {
			want := make([]float32, n*width)
			apply(want)
			g, u := newTensor(t, b, width), newTensor(t, b, width)
			begin(b, n)
			put(t, b, g.buf.ptr, gate)
			put(t, b, u.buf.ptr, up)
			second := u.buf.ptr
			if act >= actGELU {
				second = 0
			}
			b.activateTo(forms{g.buf.ptr}, act, g.buf.ptr, second, n, width)
			if d := worst(get(t, b, g.buf.ptr, n*width), want); d > 1e-6 {
				t.Errorf("activation %d, width %d: off by %g", act, width, d)
			}
		}
	}
}

func TestPoolsMatchDefinition(t *testing.T) {
	b := newBackend(t)
	rng := rand.New(rand.NewPCG(13, 14))
	const width = 40
	x := newTensor(t, b, width)
	texts := []model.Text{{Tokens: make([]int32, 3)}, {Tokens: make([]int32, 1)}, {Tokens: make([]int32, 20)}}
	values := random(rng, 24*width)
	for _, pooling := range []model.Pooling{model.PoolMean, model.PoolCLS} {
		for _, unit := range []bool{false, true} {
			b.BeginTexts(texts)
			put(t, b, x.buf.ptr, values)
			got, err := b.Pool(x, pooling, unit)
			if err != nil {
				t.Fatal(err)
			}
			got = cloned(got)
			rows, err := b.Rows(x)
			if err != nil || !slices.Equal(rows, values) {
				t.Errorf("%d values of other rows, %v", len(rows), err)
			}
			at := 0
			for i := range texts {
				n := len(texts[i].Tokens)
				if d := worst(got[i], pooled(values[at*width:(at+n)*width], width, pooling, unit)); d > 1e-6 {
					t.Errorf("pooling %d, unit %v, text %d: off by %g", pooling, unit, i, d)
				}
				at += n
			}
		}
	}
}

func cloned(rows [][]float32) [][]float32 {
	out := make([][]float32, len(rows))
	for i := range rows {
		out[i] = slices.Clone(rows[i])
	}
	return out
}

func pooled(rows []float32, width int, p model.Pooling, unit bool) []float32 {
	n := len(rows) / width
	if p == model.PoolCLS {
		n = 1
	}
	out := make([]float32, width)
	square := 0.0
	for c := range out {
		sum := 0.0
		for r := range n {
			sum += float64(rows[r*width+c])
		}
		out[c] = float32(sum / float64(n))
		square += float64(out[c]) * float64(out[c])
	}
	for c := range out {
		if unit {
			out[c] /= float32(math.Sqrt(square))
		}
	}
	return out
}
