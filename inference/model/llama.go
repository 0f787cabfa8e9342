package model

import "fmt"

// Llama is the decoder family: Llama (SmolLM2, Llama 3, Mistral), Qwen2, Qwen3
// and Gemma 3. They share one forward pass; what differs (biases, head norms,
// post-norms, windows, rotary bases) is held by the layers. See LoadDecoder.
type Llama struct {
	ops    Ops
	config Config
	blocks int
	slots  int // of host memory

	embedding      Matrix
	embeddingScale float32
	layers         []decoderLayer
	norm           Norm
	output         Matrix

	cache                 Cache
	x, q, k, v, attention Tensor
}

type decoderLayer struct {
	norm      Norm
	qkv       []Projection
	rotation  Rotation
	attention Attention
	out       Linear
	post      Norm
	ffn       GatedFFN
}

// Config describes the model.
func (m *Llama) Config() Config { return m.config }

// Blocks is how many KV cache blocks were reserved at start.
func (m *Llama) Blocks() int { return m.blocks }

// Close frees the weights, the cache and the backend they live on.
func (m *Llama) Close() error { return m.ops.Close() }

// Forward runs the batch and returns one row of logits for each requested row,
// in batch order. Rows stay valid until the next call. A batch that does not fit
// the model fails with ErrBatch and leaves the cache as it was.
func (m *Llama) Forward(b Batch) ([][]float32, error) {
	if err := m.run(b); err != nil {
		return nil, err
	}
	return m.ops.Logits(m.x, m.norm, m.output)
}

// run is the step up to the last layer.
func (m *Llama) run(b Batch) error {
	if err := m.check(b); err != nil {
		return err
	}
	m.ops.Begin(b)
	m.ops.Embed(m.x, m.embedding, m.embeddingScale)
	for i := range m.layers {
		l := &m.layers[i]
		m.ops.Project(m.x, l.norm, l.qkv...)
		m.ops.Append(m.cache, i, m.q, m.k, m.v, l.rotation)
		m.ops.Attend(m.attention, m.q, m.cache, i, l.attention)
		m.ops.Residual(m.x, m.attention, l.out, l.post)
		m.ops.FeedForward(m.x, &l.ffn)
	}
	return nil
}

// check holds a batch to the model before anything is computed.
func (m *Llama) check(b Batch) error {
	if b.Tokens() == 0 {
		return fmt.Errorf("%w: no tokens", ErrBatch)
	}
	for i := range b {
		if err := m.checkPiece(&b[i]); err != nil {
			return fmt.Errorf("%w: piece %d: %w", ErrBatch, i, err)
		}
	}
	return nil
}

func (m *Llama) checkPiece(p *Piece) error {
	n := len(p.Tokens)
	end := p.Start + n
	switch {
	case n == 0:
		return fmt.Errorf("no tokens")
	case p.Start < 0 || end > m.config.Context:
		return fmt.Errorf("positions %d to %d lie outside the context of %d tokens", p.Start, end-1, m.config.Context)
	case p.Logits < 0 || p.Logits > n:
		return fmt.Errorf("logits of %d rows wanted of %d", p.Logits, n)
	case len(p.Blocks)*BlockTokens < end:
		return fmt.Errorf("%d blocks hold %d positions, %d needed", len(p.Blocks), len(p.Blocks)*BlockTokens, end)
	}
	for _, t := range p.Tokens {
		if t < 0 || int(t) >= m.config.Vocab {
			return fmt.Errorf("token %d is outside the vocabulary of %d", t, m.config.Vocab)
		}
	}
	for _, blk := range p.Blocks {
		if blk < 0 || int(blk) >= m.blocks {
			return fmt.Errorf("block %d is outside the cache of %d blocks", blk, m.blocks)
		}
	}
	return nil
}
