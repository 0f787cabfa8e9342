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
	// Before are the first layers, on other backends, in order; the rest, at least one,
	// lies on the backend given to LoadDecoder. With any, all need StageOps; without, that backend has the whole model.
	Before []Stage
	// StepTokens is how many tokens a step will have at the most, for the memory of its
	// activations on a backend with RoomOps; 0 leaves that out of the figures.
	StepTokens int
}

// LoadDecoder puts the decoder in f into the backend's memory and reserves its
// KV cache. The file may be closed afterwards. The decoder owns the backends from then
// on; on an error the caller still does.
//
// It fails with UnknownArchitectureError, RoomError, ErrConfig, ErrTensor or ErrNoStage.
func LoadDecoder(ctx context.Context, f *gguf.File, ops Ops, cfg LoadConfig) (*Llama, error) {
	if cfg.Blocks < 1 {
		return nil, fmt.Errorf("%w: %d KV cache blocks, at least 1 is needed", ErrConfig, cfg.Blocks)
	}
	src := ggufSource{f}
	spec, err := readDecoderSpec(metadata{f: f}, src)
	if err != nil {
		return nil, err
	}
	stages, err := cfg.stagesOf(spec.Layers, ops)
	if err != nil {
		return nil, err
	}
	l := newLoader(ctx, src, ops)
	if err := l.checkRoom(spec, stages, cfg); err != nil {
		return nil, err
	}
	m := assembleDecoder(l, spec, stages, cfg.Blocks)
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
	for i := range m.stages {
		s := &m.stages[i]
		ops, ok := s.ops.(OffloadOps)
		if !ok {
			l.err = ErrNoOffload
			return
		}
		if l.err = ops.Offload(s.cache, slots); l.err != nil {
			return
		}
	}
	m.slots = slots
}

// assembleDecoder lists the parts of the model.
func assembleDecoder(l *loader, s *decoderSpec, stages []Stage, blocks int) *Llama {
	m := &Llama{config: s.Config, blocks: blocks, embeddingScale: s.embeddingScale}
	first := 0
	for i, st := range stages {
		l.ops = st.Ops
		begin := l.bytes
		l.ends(m, i == 0, i == len(stages)-1)
		part := l.stage(s, first, st.Layers, blocks)
		part.bytes = l.bytes - begin
		m.stages = append(m.stages, part)
		first += st.Layers
	}
	return m
}

// stage loads layers from first on, with their part of the cache.
func (l *loader) stage(s *decoderSpec, first, layers, blocks int) stage {
	c := s.Config
	part := stage{ops: l.ops, first: first, x: l.tensor(c.Width)}
	part.q, part.attention = l.tensor(c.Heads*c.HeadDim), l.tensor(c.Heads*c.HeadDim)
	part.k, part.v = l.tensor(c.KVHeads*c.HeadDim), l.tensor(c.KVHeads*c.HeadDim)
	global, local := l.ropes(s)
	for i := first; i < first+layers; i++ {
		attention, rope := s.attention, global
		if s.local(i) {
			attention.Window, rope = s.window, local
		}
		part.layers = append(part.layers, l.decoderLayer(&part, s, fmt.Sprintf("blk.%d.", i), attention, rope))
	}
	if l.err == nil {
		part.cache, l.err = l.ops.NewCache(s.cacheShape(layers, blocks))
	}
	return part
}

func (s *decoderSpec) cacheShape(layers, blocks int) CacheShape {
	return CacheShape{Layers: layers, Blocks: blocks, KVHeads: s.KVHeads, HeadDim: s.HeadDim}
}

func (l *loader) decoderLayer(m *stage, s *decoderSpec, prefix string, a Attention, rope Rope) decoderLayer {
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

// ends loads the input table of a model's first stage and the norm and output matrix of
// its last. Where the file ties the two matrices, one serves both on the same backend.
func (l *loader) ends(m *Llama, first, last bool) {
	c, tied := &m.config, !l.has("output.weight")
	switch {
	case first && last && tied:
		m.embedding = l.matrix("token_embd.weight", c.Vocab, c.Width, UseLookup|UseProduct)
		m.output = m.embedding
	case first:
		m.embedding = l.matrix("token_embd.weight", c.Vocab, c.Width, UseLookup)
	}
	if !last {
		return
	}
	if m.output == nil {
		name := "output.weight"
		if tied {
			name = "token_embd.weight"
		}
		m.output = l.matrix(name, c.Vocab, c.Width, UseProduct)
	}
	m.norm = l.rmsNorm("output_norm", c.Width, c.NormEps)
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
