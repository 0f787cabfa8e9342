package model

import (
	"fmt"
	"math"
	"slices"
)

// decoderSpec is a Config with what tells one family from another.
type decoderSpec struct {
	Config
	attention      Attention
	order          PairOrder
	activation     Activation
	embeddingScale float32
	ropeScale      float64 // positions are divided by it
	localRopeBase  float64 // of the layers that attend through the window
	localRopeScale float64
	window         int
	globalEvery    int // with a window: every n-th layer sees all; 0: none does
}

// local reports whether a layer attends through the sliding window.
func (s *decoderSpec) local(layer int) bool {
	return s.window > 0 && (s.globalEvery == 0 || (layer+1)%s.globalEvery != 0)
}

// Bounds on a configuration. They are far above any published model of these
// families and keep a hostile file from asking for absurd amounts of memory.
const (
	maxLayers  = 1 << 10
	maxWidth   = 1 << 16
	maxVocab   = 1 << 21
	maxContext = 1 << 24
)

// readDecoderSpec reads and checks the metadata of a decoder. The size of the
// vocabulary is that of the embedding table, which has the last word.
func readDecoderSpec(m metadata, src source) (*decoderSpec, error) {
	arch := m.str("general.architecture", "")
	if !slices.Contains(decoderArchitectures, arch) {
		return nil, &UnknownArchitectureError{Architecture: arch, Known: decoderArchitectures}
	}
	m.prefix = arch + "."
	s := &decoderSpec{Config: Config{
		Architecture: arch,
		Name:         m.str("general.name", arch),
		Layers:       m.count("block_count", maxLayers),
		Width:        m.count("embedding_length", maxWidth),
		Heads:        m.count("attention.head_count", maxWidth),
		FeedForward:  m.count("feed_forward_length", maxWidth*8),
		Context:      m.count("context_length", maxContext),
		NormEps:      float32(m.number("attention.layer_norm_rms_epsilon")),
	}}
	if m.err != nil {
		return nil, m.err
	}
	s.KVHeads = m.countOr("attention.head_count_kv", s.Heads, maxWidth)
	s.HeadDim = m.countOr("attention.key_length", s.Width/s.Heads, maxWidth)
	s.RopeDim = m.countOr("rope.dimension_count", s.HeadDim, maxWidth)
	s.RopeBase = float32(m.numberOr("rope.freq_base", 10000))
	s.ropeScale = m.linearScale()
	s.window = m.countOr("attention.sliding_window", 0, maxContext)
	if info, ok := src.info("token_embd.weight"); ok {
		s.Vocab = info.rows
	}
	s.family(&m)
	s.attention = Attention{
		Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim, Scale: s.scoreScale(),
		SoftCap: float32(m.numberOr("attn_logit_softcapping", 0)),
	}
	if m.err != nil {
		return nil, m.err
	}
	return s, s.validate(m.countOr("attention.value_length", s.HeadDim, maxWidth))
}

// family sets what the architectures do differently.
func (s *decoderSpec) family(m *metadata) {
	s.embeddingScale, s.order = 1, Halves
	s.localRopeBase, s.localRopeScale = float64(s.RopeBase), s.ropeScale
	switch s.Architecture {
	case "llama":
		s.order = Interleaved
	case "gemma3":
		s.activation = GELUTanh
		s.embeddingScale = float32(math.Sqrt(float64(s.Width)))
		s.globalEvery = m.countOr("attention.sliding_window_pattern", 6, maxLayers)
		s.localRopeBase, s.localRopeScale = m.numberOr("rope.freq_base_swa", 10000), 1
	}
}

// scoreScale is 1/√head_dim, but for the 27B Gemma 3 (the one with 62 layers),
// which divides by the square root of width/heads.
func (s *decoderSpec) scoreScale() float32 {
	dim := float64(s.HeadDim)
	if s.Architecture == "gemma3" && s.Layers == 62 {
		dim = float64(s.Width) / float64(s.Heads)
	}
	return float32(1 / math.Sqrt(dim))
}

func (s *decoderSpec) validate(valueDim int) error {
	switch {
	case s.Vocab < 1 || s.Vocab > maxVocab:
		return fmt.Errorf("%w: vocabulary of %d tokens (1 to %d)", ErrConfig, s.Vocab, maxVocab)
	case s.KVHeads > s.Heads || s.Heads%s.KVHeads != 0:
		return fmt.Errorf("%w: %d query heads cannot share %d key/value heads", ErrConfig, s.Heads, s.KVHeads)
	case s.HeadDim < 2 || s.HeadDim%2 != 0:
		return fmt.Errorf("%w: head dimension %d is not even", ErrConfig, s.HeadDim)
	case valueDim != s.HeadDim:
		return fmt.Errorf("%w: values of %d dimensions beside keys of %d", ErrConfig, valueDim, s.HeadDim)
	case s.RopeDim > s.HeadDim || s.RopeDim%2 != 0:
		return fmt.Errorf("%w: %d rotated dimensions in a head of %d", ErrConfig, s.RopeDim, s.HeadDim)
	case !(s.NormEps > 0) || !(s.RopeBase > 1) || !(s.localRopeBase > 1) || !(s.ropeScale > 0):
		return fmt.Errorf("%w: epsilon %g, rotary bases %g and %g and scale %g must be positive", ErrConfig, s.NormEps, s.RopeBase, s.localRopeBase, s.ropeScale)
	}
	return nil
}
