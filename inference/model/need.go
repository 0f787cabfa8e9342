package model

import (
	"fmt"
	"strings"

	"ragd/inference/gguf"
)

// Needs tells what runs of a decoder's layers would take on a backend, from what the
// file says, without loading anything.
type Needs struct {
	spec *decoderSpec
	ops  SizeOps
	cfg  LoadConfig
	// Bytes of weights: of each layer, of the input table, of the output matrix with its
	// norm, and of what every stage has.
	layers                    []int64
	embedding, output, shared int64
	tied                      bool
}

// Need is the memory of a run of layers, in bytes.
type Need struct {
	Weights int64
	Cache   int64
	// Step is for the activations of the largest step.
	Step int64
}

// Sum is all of it.
func (n Need) Sum() int64 { return n.Weights + n.Cache + n.Step }

// NeedsOf reads the sizes of the decoder in f. Errors are those of LoadDecoder.
func NeedsOf(f *gguf.File, ops SizeOps, cfg LoadConfig) (*Needs, error) {
	src := ggufSource{f}
	spec, err := readDecoderSpec(metadata{f: f}, src)
	if err != nil {
		return nil, err
	}
	return needsOf(src, spec, ops, cfg), nil
}

func needsOf(src source, spec *decoderSpec, ops SizeOps, cfg LoadConfig) *Needs {
	n := &Needs{spec: spec, ops: ops, cfg: cfg, layers: make([]int64, spec.Layers), tied: true}
	for _, name := range src.names() {
		info, ok := src.info(name)
		if !ok {
			continue
		}
		bytes := 4 * int64(info.cols) // a vector, which is float32 wherever it lies
		if info.rows > 1 {
			bytes = ops.MatrixBytes(info.typ, info.rows, info.cols)
		}
		var layer int
		switch _, err := fmt.Sscanf(name, "blk.%d.", &layer); {
		case err == nil && layer >= 0 && layer < spec.Layers:
			n.layers[layer] += bytes
		case name == "token_embd.weight":
			n.embedding = bytes
		case strings.HasPrefix(name, "output"):
			n.output += bytes
			n.tied = n.tied && name != "output.weight"
		default:
			n.shared += bytes
		}
	}
	return n
}

// Layers is how many the model has.
func (n *Needs) Layers() int { return len(n.layers) }

// Of is what the layers [first, end) take, with the embedding when first is 0 and with
// the output matrix when end is the last. A tied matrix lies on both sides of a split.
func (n *Needs) Of(first, end int) Need {
	need := Need{Weights: n.shared, Cache: n.ops.CacheBytes(n.spec.cacheShape(end-first, n.cfg.Blocks))}
	for _, bytes := range n.layers[first:end] {
		need.Weights += bytes
	}
	last := end == len(n.layers)
	if first == 0 || last && n.tied {
		need.Weights += n.embedding
	}
	if last {
		need.Weights += n.output
	}
	if ops, ok := n.ops.(RoomOps); ok && n.cfg.StepTokens > 0 {
		need.Step = ops.StepBytes(n.spec.Config, n.step())
	}
	return need
}

// Check fails with a RoomError when the layers [first, end) take more than the backend
// has free, and with nothing where a backend does not know what it has.
func (n *Needs) Check(first, end int) error {
	ops, ok := n.ops.(RoomOps)
	if !ok {
		return nil
	}
	free, total, err := ops.Room()
	if err != nil {
		return err
	}
	need := n.Of(first, end)
	if need.Sum() <= free {
		return nil
	}
	return &RoomError{
		Need: need, CacheTokens: n.cfg.Blocks * BlockTokens, Free: free, Total: total,
		First: first, Count: end - first, Of: n.Layers(), Fit: n.Fit(end, free),
	}
}

// Place is the layers [first, end) on a backend of that name, as they would lie.
func (n *Needs) Place(backend string, first, end int) Place {
	need := n.Of(first, end)
	return Place{Backend: backend, First: first, Layers: end - first, Weights: need.Weights, Cache: need.Cache}
}

// step is the largest one.
func (n *Needs) step() StepShape {
	longest := min(n.spec.Context, n.cfg.Blocks*BlockTokens)
	return StepShape{Rows: n.cfg.StepTokens, Logits: min(n.cfg.StepTokens, mostLogits), Longest: longest}
}

// mostLogits is how many rows of a step have logits at the most: more running answers
// with more drafts than that are not usual.
const mostLogits = 64

// Fit is how many of the layers before end fit into so many bytes, the last of them
// first.
func (n *Needs) Fit(end int, bytes int64) int {
	for first := 0; first < end; first++ {
		if n.Of(first, end).Sum() <= bytes {
			return end - first
		}
	}
	return 0
}
