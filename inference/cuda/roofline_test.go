//go:build cuda && cgo

package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// card is a device as its maker describes it: bytes a second of its memory, operations
// a second of int8 tensor cores (dense), float32 instructions a second (half the FLOPS).
type card struct {
	name                       string
	bandwidth, tensor, float32 float64
}

var cards = []card{
	{"H100 SXM", 3.35e12, 1979e12, 67e12 / 2},
	{"RTX 4090", 1.008e12, 660.6e12, 82.6e12 / 2},
}

// paper is an 8B model (Llama 3.1's shape; Q4_K, the output matrix in Q6_K) of which
// one layer is recorded and nothing is run. Its weights and cache take no memory.
type paper struct {
	*Backend
	names    map[uint64]string
	matrices map[cudrv.Ptr]*matrix
	depth, n int
}

const (
	paperLayers, paperWidth, paperHeads, paperKV, paperDim = 32, 4096, 32, 8, 128
	paperFF, paperVocab                                    = 14336, 128256
)

func newPaper(t *testing.T) *paper {
	onTensorCores(t)
	p := &paper{Backend: newBackend(t), names: make(map[uint64]string), matrices: make(map[cudrv.Ptr]*matrix)}
	return p
}

func (p *paper) matrix(t *testing.T, typ quant.Type, rows, cols int) *matrix {
	t.Helper()
	f := formats[typ]
	at := cudrv.Ptr(len(p.matrices)+1) << 40
	m := p.newMatrix(f, rows, cols)
	m.weights[0] = at
	p.matrices[at] = m
	if err := p.device.Do(func() error { return p.findFor(m, f.name) }); err != nil {
		t.Fatal(err)
	}
	return m
}

// record is the launches of one layer and of what comes before and after all layers,
// for n tokens behind depth others.
func (p *paper) record(t *testing.T, n, depth int) (layer, once []work) {
	t.Helper()
	p.n, p.depth = n, depth
	q4 := func(rows, cols int) *matrix { return p.matrix(t, quant.Q4_K, rows, cols) }
	x, q, k := newTensor(t, p.Backend, paperWidth), newTensor(t, p.Backend, paperHeads*paperDim), newTensor(t, p.Backend, paperKV*paperDim)
	v, out := newTensor(t, p.Backend, paperKV*paperDim), newTensor(t, p.Backend, paperHeads*paperDim)
	norm := model.Norm{Gain: loadVector(t, p.Backend, make([]float32, paperWidth)), Eps: 1e-5}
	rope, err := p.NewRope(make([]float64, paperDim/2), model.Interleaved)
	if err != nil {
		t.Fatal(err)
	}
	blocks := ceil(depth+n, model.BlockTokens)
	c := &cache{
		shape: model.CacheShape{Layers: paperLayers, Blocks: blocks, KVHeads: paperKV, HeadDim: paperDim}, format: cacheFormats[quant.F16],
		planes: make([]cudrv.Ptr, 2), sizes: make([]int64, 2),
	}
	p.Begin(model.Batch{{Tokens: make([]int32, n), Start: depth, Blocks: make([]int32, blocks), Logits: 1}})
	p.Project(x, norm, model.Projection{Linear: model.Linear{W: q4(paperWidth, paperWidth)}, Out: q},
		model.Projection{Linear: model.Linear{W: q4(paperKV*paperDim, paperWidth)}, Out: k}, model.Projection{Linear: model.Linear{W: q4(paperKV*paperDim, paperWidth)}, Out: v})
	p.Append(c, 0, q, k, v, model.Rotation{Rope: rope})
	p.Attend(out, q, c, 0, model.Attention{Heads: paperHeads, KVHeads: paperKV, HeadDim: paperDim, Scale: 1})
	p.Residual(x, out, model.Linear{W: q4(paperWidth, paperWidth)}, model.Norm{})
	p.FeedForward(x, &model.GatedFFN{Norm: norm, Gate: q4(paperFF, paperWidth), Up: q4(paperFF, paperWidth), Down: q4(paperWidth, paperFF)})
	layer = p.works(t)
	p.plan.reset()
	table := p.matrix(t, quant.Q6_K, paperVocab, paperWidth)
	p.Embed(x, q4(paperVocab, paperWidth), 1)
	p.choose(p.logits(x, norm, table), 1, paperVocab, 1)
	once = p.works(t)
	p.plan.reset()
	return layer, once
}

// work is what one launch does: bytes that have to come from or go to memory once,
// integer operations of products and the float32 instructions beside them.
type work struct {
	name               string
	blocks             int
	bytes, ops, floats float64
}

func (p *paper) works(t *testing.T) []work {
	t.Helper()
	p.plan.finish()
	for name, f := range p.kernels {
		p.names[f.ID()] = name
	}
	if p.err != nil {
		t.Fatal(p.err)
	}
	var list []work
	for _, l := range p.plan.launches {
		w := work{name: p.names[l.f.ID()], blocks: l.grid.X * l.grid.Y * l.grid.Z}
		args := p.plan.args[l.args:l.end]
		switch {
		case strings.HasPrefix(w.name, "product_"):
			p.product(&w, args)
		case strings.HasPrefix(w.name, "attend_f16"):
			p.attention(&w)
		default:
			p.rows(&w)
		}
		list = append(list, w)
	}
	return list
}

// product: weights and activations are read, results written. Each sum over a block of
// 32 columns is converted, scaled by the integer scale, by the product of both scales
// and added, and the minimum's share is added: five instructions.
func (p *paper) product(w *work, args []byte) {
	m := p.matrices[cudrv.Ptr(binary.LittleEndian.Uint64(args))]
	n := float64(binary.LittleEndian.Uint32(args[len(args)-4:]))
	rows, cols := float64(m.rows), float64(m.cols)
	w.bytes = float64(m.bytes) + n*cols*(1+8.0/32) + n*rows*4
	w.ops = 2 * rows * cols * n
	w.floats = 5 * rows * cols / 32 * n
}

// attention: keys and values are read once; a score and a weighted value take a fused
// multiply-add an element.
func (p *paper) attention(w *work) {
	seen := 0.0
	for i := range p.n {
		seen += float64(p.depth + i + 1)
	}
	w.bytes = float64(p.depth+p.n)*paperKV*paperDim*2*2 + float64(p.n)*paperHeads*paperDim*8
	w.floats = 2 * seen * paperHeads * paperDim
}

// rows: kernels over activations read and write a few of them.
func (p *paper) rows(w *work) {
	width := float64(paperWidth)
	if w.name == "activate_rows" {
		width = 2 * paperFF
	}
	if w.name == "best_logits" {
		width = paperVocab / float64(p.n)
	}
	w.bytes = float64(p.n) * width * 5.25
}

// total adds up launches of all layers.
func total(layer, once []work) (sum work, launches int) {
	for i, list := range [][]work{layer, once} {
		times := [...]float64{paperLayers, 1}[i]
		for _, w := range list {
			sum.bytes, sum.ops, sum.floats = sum.bytes+times*w.bytes, sum.ops+times*w.ops, sum.floats+times*w.floats
			launches += int(times)
		}
	}
	return sum, launches
}

// The tables of docs/GPU.md are what the launches of this backend come to.
func TestRooflineIsDocumented(t *testing.T) {
	p := newPaper(t)
	var b strings.Builder
	layer, once := p.record(t, 1, 2048)
	writeKernels(&b, layer, once)
	writeDecode(&b, layer, once)
	layer, once = p.record(t, 512, 0)
	writePrefill(&b, layer, once)
	t.Log("\n" + b.String())
	docs, err := os.ReadFile("../../docs/GPU.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if !strings.Contains(string(docs), line) {
			t.Errorf("docs/GPU.md lacks %q", line)
		}
	}
}

// writeKernels lists a decode step's launches of one layer, and those around them.
func writeKernels(b *strings.Builder, layer, once []work) {
	fmt.Fprintf(b, "| kernel | thread blocks | MB | million operations | µs at full bandwidth: %s | %s |\n|---|---|---|---|---|---|\n", cards[0].name, cards[1].name)
	for _, list := range [][]work{layer, once} {
		for _, w := range list {
			fmt.Fprintf(b, "| `%s` | %d | %.3f | %.1f | %.2f | %.2f |\n", w.name, w.blocks, w.bytes/1e6, (w.ops+2*w.floats)/1e6, w.bytes/cards[0].bandwidth*1e6, w.bytes/cards[1].bandwidth*1e6)
		}
	}
}

// writeDecode says what share of the bandwidth a decode step reaches when so much time
// passes between its launches.
func writeDecode(b *strings.Builder, layer, once []work) {
	sum, launches := total(layer, once)
	fmt.Fprintf(b, "| decode, %d launches, %.2f GB a token | ms at full bandwidth | share with 0.5 µs between launches | with 1 µs | with 2 µs |\n|---|---|---|---|---|\n", launches, sum.bytes/1e9)
	for _, c := range cards {
		floor := sum.bytes / c.bandwidth
		share := func(gap float64) float64 { return 100 * floor / (floor + gap*float64(launches)) }
		fmt.Fprintf(b, "| %s | %.2f | %.0f %% | %.0f %% | %.0f %% |\n", c.name, 1000*floor, share(0.5e-6), share(1e-6), share(2e-6))
	}
}

// writePrefill says what bounds a step of a prompt.
func writePrefill(b *strings.Builder, layer, once []work) {
	sum, _ := total(layer, once)
	fmt.Fprintf(b, "| prefill of 512 tokens, %.2f T operations | ms by memory | by tensor cores | by float32 instructions | at most, of the int8 peak |\n|---|---|---|---|---|\n", sum.ops/1e12)
	for _, c := range cards {
		memory, tensor, floats := sum.bytes/c.bandwidth, sum.ops/c.tensor, sum.floats/c.float32
		fmt.Fprintf(b, "| %s | %.2f | %.2f | %.2f | %.0f %% |\n", c.name, 1000*memory, 1000*tensor, 1000*floats, 100*tensor/math.Max(math.Max(memory, tensor), floats))
	}
}
