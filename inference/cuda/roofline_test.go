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

// card is a device as its maker describes it: bytes a second of its memory, operations a
// second of tensor cores (dense; int8, and f16 with float32 sums), float32 instructions a
// second (half the FLOPS), and those of any kind: four times 32 a cycle of a multiprocessor.
type card struct {
	name                                   string
	major, minor                           int
	bandwidth, int8, half, float32, issued float64
}

var cards = []card{
	{"H100 SXM", 9, 0, 3.35e12, 1979e12, 989.4e12, 67e12 / 2, 67e12 / 2},
	{"RTX 4090", 8, 9, 1.008e12, 660.6e12, 165.2e12, 82.6e12 / 2, 82.6e12 / 2},
	{"A100 SXM", 8, 0, 2.039e12, 624e12, 312e12, 19.5e12 / 2, 19.5e12},
	{"RTX 3090", 8, 6, 0.936e12, 284e12, 71e12, 35.6e12 / 2, 35.6e12 / 2},
}

// paper is an 8B model (Llama 3.1's shape; Q4_K, the output matrix in Q6_K) of which
// one layer is recorded and nothing is run. Its weights and cache take no memory.
type paper struct {
	*Backend
	names    map[uint64]string
	matrices map[cudrv.Ptr]*matrix
	bits     map[*matrix]int // of a code
	depth, n int
}

const (
	paperLayers, paperWidth, paperHeads, paperKV, paperDim = 32, 4096, 32, 8, 128
	paperFF, paperVocab                                    = 14336, 128256
)

func newPaper(t *testing.T, capability string) *paper {
	onCapability(t, capability)
	return &paper{Backend: newBackend(t), names: make(map[uint64]string), matrices: make(map[cudrv.Ptr]*matrix), bits: make(map[*matrix]int)}
}

func (p *paper) matrix(t *testing.T, typ quant.Type, rows, cols int) *matrix {
	t.Helper()
	f := formats[typ]
	at := cudrv.Ptr(len(p.matrices)+1) << 40
	m := p.newMatrix(f, rows, cols)
	m.weights[0] = at
	p.matrices[at], p.bits[m] = m, f.bits
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
	p.choose(p.logits(x, norm, table), 1, paperVocab, 1, unchanged(1))
	once = p.works(t)
	p.plan.reset()
	return layer, once
}

// work is what one launch does: bytes that have to come from or go to memory once, and
// those that thread blocks ask the caches for, operations on int8 and on f16 of tensor
// cores, the float32 instructions beside them, and instructions of every kind.
type work struct {
	name                                       string
	blocks                                     int
	bytes, cached, ops, halves, floats, issued float64
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
			p.product(&w, l.grid, args)
		case strings.HasPrefix(w.name, "attend_f16_128x64"):
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
//
// In half precision a sum over 256 columns is scaled and added in one. A word of codes
// becomes f16 in a shift, four masks with the base, four subtractions and four multiply-adds
// (eight codes of four bits), or a change of sign, two permutations and two of each (four of
// eight bits), once a tile; an mma of a warp is 2048 multiplications.
func (p *paper) product(w *work, g cudrv.Grid, args []byte) {
	m := p.matrices[cudrv.Ptr(binary.LittleEndian.Uint64(args))]
	n := float64(binary.LittleEndian.Uint32(args[len(args)-4:]))
	rows, cols := float64(m.rows), float64(m.cols)
	w.ops = 2 * rows * cols * n
	input := n * cols * (1 + 8.0/32)
	w.floats = 5 * rows * cols / 32 * n
	w.issued = w.floats
	if m.reads == asHalves {
		input = n * float64(ceil(m.cols, halfSpan)) * (2*halfSpan + 4)
		w.floats = rows * cols / halfSpan * n
		perWeight := map[int]float64{4: 13.0 / 8, 8: 7.0 / 4}[p.bits[m]]
		w.ops, w.halves = 0, w.ops
		w.issued = w.floats + perWeight*rows*cols*float64(g.Y) + rows*cols*float64(ceil(int(n), halfTile)*halfTile)*32/2048
	}
	w.bytes = float64(m.bytes) + input + n*rows*4
	w.cached = float64(m.bytes)*float64(g.Y) + input*float64(g.X)
}

// attention: keys and values are read once; a score and a weighted value take a multiply-
// add an element on tensor cores. A score is scaled, held against what its row sees, the
// largest so far and the maximum, and becomes a half of its power of two: ten instructions.
func (p *paper) attention(w *work) {
	seen := 0.0
	for i := range p.n {
		seen += float64(p.depth + i + 1)
	}
	w.bytes = float64(p.depth+p.n)*paperKV*paperDim*2*2 + float64(p.n)*paperHeads*paperDim*8
	w.halves = 4 * seen * paperHeads * paperDim
	w.floats = 10 * seen * paperHeads
	w.issued = w.floats + w.halves/2*32/2048
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
			sum.bytes, sum.cached, sum.ops = sum.bytes+times*w.bytes, sum.cached+times*w.cached, sum.ops+times*w.ops
			sum.halves, sum.floats, sum.issued = sum.halves+times*w.halves, sum.floats+times*w.floats, sum.issued+times*w.issued
			launches += int(times)
		}
	}
	return sum, launches
}

// The tables of docs/GPU.md are what the launches of this backend come to.
func TestRooflineIsDocumented(t *testing.T) {
	var b strings.Builder
	var steps []decode
	for _, c := range cards[:2] {
		layer, once := newPaper(t, fmt.Sprintf("%d.%d", c.major, c.minor)).record(t, 1, 2048)
		steps = append(steps, decode{c, layer, once})
	}
	writeKernels(&b, steps[0], steps[1])
	writeDecode(&b, steps)
	writePrefill(t, &b)
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

// decode is the launches of a decode step on a card.
type decode struct {
	card
	layer, once []work
}

// writeKernels lists a decode step's launches of one layer, and those around them.
func writeKernels(b *strings.Builder, x, y decode) {
	fmt.Fprintf(b, "| %s: kernel | thread blocks | MB | µs at full bandwidth | %s: kernel | thread blocks | MB | µs at full bandwidth |\n|---|---|---|---|---|---|---|---|\n", x.name, y.name)
	for i, list := range [][]work{x.layer, x.once} {
		for j, w := range list {
			v := [][]work{y.layer, y.once}[i][j]
			fmt.Fprintf(b, "| `%s` | %d | %.3f | %.2f | `%s` | %d | %.3f | %.2f |\n",
				w.name, w.blocks, w.bytes/1e6, w.bytes/x.bandwidth*1e6, v.name, v.blocks, v.bytes/1e6, v.bytes/y.bandwidth*1e6)
		}
	}
}

// writeDecode says what share of the bandwidth a decode step reaches when so much time
// passes between its launches, and what share of the instructions making f16 of codes takes.
func writeDecode(b *strings.Builder, steps []decode) {
	fmt.Fprintf(b, "| decode | launches | GB a token | ms at full bandwidth | share with 0.5 µs between launches | with 1 µs | with 2 µs | making f16 of codes, of the instructions in that time |\n|---|---|---|---|---|---|---|---|\n")
	for _, c := range steps {
		sum, launches := total(c.layer, c.once)
		floor := sum.bytes / c.bandwidth
		share := func(gap float64) float64 { return 100 * floor / (floor + gap*float64(launches)) }
		making := "–"
		if halvesPay(c.major, c.minor) {
			making = fmt.Sprintf("%.0f %%", 100*sum.issued/c.issued/floor)
		}
		fmt.Fprintf(b, "| %s | %d | %.2f | %.2f | %.0f %% | %.0f %% | %.0f %% | %s |\n",
			c.name, launches, sum.bytes/1e9, 1000*floor, share(0.5e-6), share(1e-6), share(2e-6), making)
	}
}

// writePrefill says what bounds a step of a prompt on each card with the products of either
// kind, and holds halvesPay to it.
func writePrefill(t *testing.T, b *strings.Builder) {
	fmt.Fprintf(b, "| prefill of 512 tokens | products | ms by memory | by tensor cores | by other instructions | GB asked of the caches | at most, of the int8 peak |\n|---|---|---|---|---|---|---|\n")
	var sums [2]work
	for i, capability := range []string{"8.6", "8.0"} {
		sums[i], _ = total(newPaper(t, capability).record(t, 512, 0))
	}
	for _, c := range cards {
		pays := halvesPay(c.major, c.minor)
		var bounds [2]float64
		for i, kind := range []string{"int8", "f16"} {
			sum := sums[i]
			memory, tensor := sum.bytes/c.bandwidth, sum.ops/c.int8+sum.halves/c.half
			other := math.Max(sum.floats/c.float32, sum.issued/c.issued)
			bounds[i] = math.Max(math.Max(memory, tensor), other)
			if pays == (i == 1) {
				kind = "**" + kind + "**"
			}
			fmt.Fprintf(b, "| %s | %s | %.2f | %.2f | %.2f | %.0f | %.0f %% |\n", c.name, kind, 1000*memory, 1000*tensor, 1000*other, sum.cached/1e9, 100*(sum.ops+sum.halves)/c.int8/bounds[i])
		}
		if pays != (bounds[1] < bounds[0]) {
			t.Errorf("%s: products of int8 take %.1f ms at least, in half precision %.1f ms", c.name, 1000*bounds[0], 1000*bounds[1])
		}
	}
}
