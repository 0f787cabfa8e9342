package model

import (
	"context"
	"fmt"
	"math"

	"ragd/inference/gguf"
)

// decoderArchitectures are the GGUF architectures LoadDecoder knows.
var decoderArchitectures = []string{"gemma3", "llama", "qwen2", "qwen3"}

// LoadConfig sizes a decoder.
type LoadConfig struct {
	// Blocks is the number of KV cache blocks of BlockTokens positions to
	// reserve, at least one.
	Blocks int
	// Slots is how many blocks may be kept in host memory besides, on a backend that has
	// OffloadOps; others fail with ErrNoOffload.
	Slots int
}

// LoadDecoder puts the decoder in f into the backend's memory and reserves its
// KV cache. The file may be closed afterwards. The decoder owns ops from then on;
// on an error the caller still does.
//
// It fails with UnknownArchitectureError, RoomError, ErrConfig or ErrTensor.
func LoadDecoder(ctx context.Context, f *gguf.File, ops Ops, cfg LoadConfig) (*Llama, error) {
	if cfg.Blocks < 1 {
		return nil, fmt.Errorf("%w: %d KV cache blocks, at least 1 is needed", ErrConfig, cfg.Blocks)
	}
	src := ggufSource{f}
	spec, err := readDecoderSpec(metadata{f: f}, src)
	if err != nil {
		return nil, err
	}
	l := newLoader(ctx, src, ops)
	if err := l.checkRoom(spec.cacheShape(cfg.Blocks)); err != nil {
		return nil, err
	}
	m := assembleDecoder(l, spec, cfg.Blocks)
	l.offload(m, cfg.Slots)
	if err := l.finish(); err != nil {
		return nil, err
	}
	m.config.Weights = l.bytes
	return m, nil
}

// offload reserves host memory for cache blocks.
func (l *loader) offload(m *Llama, slots int) {
	if l.err != nil || slots == 0 {
		return
	}
	ops, ok := l.ops.(OffloadOps)
	if !ok {
		l.err = ErrNoOffload
		return
	}
	l.err = ops.Offload(m.cache, slots)
	m.slots = slots
}

// assembleDecoder lists the parts of the model.
func assembleDecoder(l *loader, s *decoderSpec, blocks int) *Llama {
	c := s.Config
	m := &Llama{ops: l.ops, config: c, blocks: blocks, embeddingScale: s.embeddingScale}
	m.embedding, m.output = l.embeddings(c.Vocab, c.Width)
	m.norm = l.rmsNorm("output_norm", c.Width, c.NormEps)
	m.x = l.tensor(c.Width)
	m.q, m.attention = l.tensor(c.Heads*c.HeadDim), l.tensor(c.Heads*c.HeadDim)
	m.k, m.v = l.tensor(c.KVHeads*c.HeadDim), l.tensor(c.KVHeads*c.HeadDim)
	global, local := l.ropes(s)
	for i := range c.Layers {
		attention, rope := s.attention, global
		if s.local(i) {
			attention.Window, rope = s.window, local
		}
		m.layers = append(m.layers, l.decoderLayer(m, s, fmt.Sprintf("blk.%d.", i), attention, rope))
	}
	if l.err == nil {
		m.cache, l.err = l.ops.NewCache(s.cacheShape(blocks))
	}
	return m
}

func (s *decoderSpec) cacheShape(blocks int) CacheShape {
	return CacheShape{Layers: s.Layers, Blocks: blocks, KVHeads: s.KVHeads, HeadDim: s.HeadDim}
}

func (l *loader) decoderLayer(m *Llama, s *decoderSpec, prefix string, a Attention, rope Rope) decoderLayer {
	c := s.Config
	queries, keys := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	return decoderLayer{
		norm: l.rmsNorm(prefix+"attn_norm", c.Width, c.NormEps),
		qkv: []Projection{
			{Linear: l.linear(prefix+"attn_q", queries, c.Width), Out: m.q},
			{Linear: l.linear(prefix+"attn_k", keys, c.Width), Out: m.k},
			{Linear: l.linear(prefix+"attn_v", keys, c.Width), Out: m.v},
		},
		rotation: Rotation{
			Rope:  rope,
			QNorm: l.optionalNorm(prefix+"attn_q_norm", c.HeadDim, c.NormEps),
			KNorm: l.optionalNorm(prefix+"attn_k_norm", c.HeadDim, c.NormEps),
		},
		attention: a,
		out:       l.linear(prefix+"attn_output", c.Width, queries),
		post:      l.optionalNorm(prefix+"post_attention_norm", c.Width, c.NormEps),
		ffn: GatedFFN{
			Norm: l.rmsNorm(prefix+"ffn_norm", c.Width, c.NormEps),
			Gate: l.matrix(prefix+"ffn_gate.weight", c.FeedForward, c.Width, UseProduct),
			Up:   l.matrix(prefix+"ffn_up.weight", c.FeedForward, c.Width, UseProduct),
			Down: l.matrix(prefix+"ffn_down.weight", c.Width, c.FeedForward, UseProduct),
			Act:  s.activation,
			Post: l.optionalNorm(prefix+"post_ffw_norm", c.Width, c.NormEps),
		},
	}
}

// embeddings loads the input table and the output matrix, one matrix for both
// where the file ties them.
func (l *loader) embeddings(vocab, width int) (input, output Matrix) {
	if !l.has("output.weight") {
		tied := l.matrix("token_embd.weight", vocab, width, UseLookup|UseProduct)
		return tied, tied
	}
	input = l.matrix("token_embd.weight", vocab, width, UseLookup)
	return input, l.matrix("output.weight", vocab, width, UseProduct)
}

// ropes makes the rotary positions of global and of local layers; models without
// local layers use one.
func (l *loader) ropes(s *decoderSpec) (global, local Rope) {
	factors := make([]float32, s.RopeDim/2)
	for i := range factors {
		factors[i] = 1
	}
	// Llama 3's scaled RoPE is stored as a divisor for each frequency.
	if l.has("rope_freqs.weight") {
		factors = l.floats("rope_freqs.weight", s.RopeDim/2)
	}
	global = l.rope(frequencies(s.RopeDim, float64(s.RopeBase), s.ropeScale, factors), s.order)
	if s.window == 0 || s.localRopeBase == float64(s.RopeBase) && s.localRopeScale == s.ropeScale {
		return global, global
	}
	return global, l.rope(frequencies(s.RopeDim, s.localRopeBase, s.localRopeScale, factors), s.order)
}

func (l *loader) rope(freqs []float64, order PairOrder) Rope {
	if l.err != nil {
		return nil
	}
	r, err := l.ops.NewRope(freqs, order)
	l.err = err
	return r
}

// frequencies are base^(-2i/dim) / (scale · factor_i), radians a position (RoFormer,
// arXiv 2104.09864; scale is linear position interpolation, arXiv 2306.15595).
func frequencies(dim int, base, scale float64, factors []float32) []float64 {
	freqs := make([]float64, len(factors))
	for i := range freqs {
		freqs[i] = math.Pow(base, -2*float64(i)/float64(dim)) / (scale * float64(factors[i]))
	}
	return freqs
}
