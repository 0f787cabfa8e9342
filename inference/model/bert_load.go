package model

import (
	"context"
	"fmt"
	"math"

	"ragd/inference/gguf"
)

// LoadEncoder puts the encoder in f into the backend's memory. The file may be
// closed afterwards. The encoder owns ops from then on; on an error the caller
// still does.
//
// It fails with UnknownArchitectureError, ErrConfig or ErrTensor.
func LoadEncoder(ctx context.Context, f *gguf.File, ops Ops) (*BERT, error) {
	src := ggufSource{f}
	c, err := readEncoderConfig(metadata{f: f}, src)
	if err != nil {
		return nil, err
	}
	return loadBERT(ctx, src, ops, c)
}

func readEncoderConfig(m metadata, src source) (*EncoderConfig, error) {
	arch := m.str("general.architecture", "")
	if arch != "bert" {
		return nil, &UnknownArchitectureError{Architecture: arch, Known: []string{"bert"}}
	}
	c := &EncoderConfig{
		QueryPrefix:   m.str("ragd.embedding.query_prefix", ""),
		PassagePrefix: m.str("ragd.embedding.passage_prefix", ""),
		Unit:          true,
	}
	name := m.str("general.name", arch)
	m.prefix = arch + "."
	c.Config = Config{
		Architecture: arch,
		Name:         name,
		Layers:       m.count("block_count", maxLayers),
		Width:        m.count("embedding_length", maxWidth),
		Heads:        m.count("attention.head_count", maxWidth),
		FeedForward:  m.count("feed_forward_length", maxWidth*8),
		Context:      m.count("context_length", maxContext),
		NormEps:      float32(m.number("attention.layer_norm_epsilon")),
	}
	c.Pooling = Pooling(m.countOr("pooling_type", int(PoolNone), int(PoolRank)))
	if m.err != nil {
		return nil, m.err
	}
	return c, c.complete(src)
}

// complete derives what the tensors say and checks the whole.
func (c *EncoderConfig) complete(src source) error {
	if c.Heads < 1 || c.Width%c.Heads != 0 {
		return fmt.Errorf("%w: width %d is no multiple of %d heads", ErrConfig, c.Width, c.Heads)
	}
	if !(c.NormEps > 0) {
		return fmt.Errorf("%w: epsilon %g must be positive", ErrConfig, c.NormEps)
	}
	c.KVHeads, c.HeadDim = c.Heads, c.Width/c.Heads
	tokens, _ := src.info("token_embd.weight")
	positions, ok := src.info("position_embd.weight")
	out, _ := src.info("cls.output.weight")
	c.Vocab, c.Labels = tokens.rows, out.rows
	_, c.Dense = src.info("cls.weight")
	c.Context = min(c.Context, positions.rows)
	if ok && c.Context < 1 {
		return fmt.Errorf("%w: %d positions are left for text", ErrConfig, c.Context)
	}
	if c.Vocab > maxVocab {
		return fmt.Errorf("%w: vocabulary of %d tokens (1 to %d)", ErrConfig, c.Vocab, maxVocab)
	}
	return nil
}

func loadBERT(ctx context.Context, src source, ops Ops, c *EncoderConfig) (*BERT, error) {
	l := newLoader(ctx, src, ops)
	m := assembleBERT(l, c)
	if err := l.finish(); err != nil {
		return nil, err
	}
	m.config.Weights = l.bytes
	return m, nil
}

// assembleBERT lists the parts of the model.
func assembleBERT(l *loader, c *EncoderConfig) *BERT {
	m := &BERT{ops: l.ops, config: *c}
	m.input = TextEmbedding{
		Tokens:    l.matrix("token_embd.weight", c.Vocab, c.Width, UseLookup),
		Positions: l.lookup("position_embd.weight", c.Width),
		Norm:      l.layerNorm("token_embd_norm", c.Width, c.NormEps),
	}
	if l.has("token_types.weight") {
		m.input.Types = l.lookup("token_types.weight", c.Width)
	}
	m.x, m.h = l.tensor(c.Width), l.tensor(c.Width)
	m.q, m.k, m.v = l.tensor(c.Width), l.tensor(c.Width), l.tensor(c.Width)
	for i := range c.Layers {
		m.layers = append(m.layers, l.encoderLayer(m, fmt.Sprintf("blk.%d.", i)))
	}
	if l.has("cls.weight") {
		m.head.dense = l.linear("cls", c.Width, c.Width)
	}
	if c.Labels > 0 {
		m.head.out = l.linear("cls.output", c.Labels, c.Width)
	}
	return m
}

// lookup loads a table with as many rows as the file has.
func (l *loader) lookup(name string, width int) Matrix {
	info, _ := l.src.info(name)
	return l.matrix(name, info.rows, width, UseLookup)
}

func (l *loader) encoderLayer(m *BERT, prefix string) encoderLayer {
	c := &m.config
	return encoderLayer{
		qkv: []Projection{
			{Linear: l.linear(prefix+"attn_q", c.Width, c.Width), Out: m.q},
			{Linear: l.linear(prefix+"attn_k", c.Width, c.Width), Out: m.k},
			{Linear: l.linear(prefix+"attn_v", c.Width, c.Width), Out: m.v},
		},
		attention: Attention{Heads: c.Heads, KVHeads: c.Heads, HeadDim: c.HeadDim, Scale: float32(1 / math.Sqrt(float64(c.HeadDim)))},
		out:       l.linear(prefix+"attn_output", c.Width, c.Width),
		norm:      l.layerNorm(prefix+"attn_output_norm", c.Width, c.NormEps),
		ffn: FFN{
			Up:   l.linear(prefix+"ffn_up", c.FeedForward, c.Width),
			Down: l.linear(prefix+"ffn_down", c.Width, c.FeedForward),
			Norm: l.layerNorm(prefix+"layer_output_norm", c.Width, c.NormEps),
		},
	}
}
