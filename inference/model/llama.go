package model

import (
	"errors"
	"fmt"
)

// Llama is the decoder family: Llama (SmolLM2, Llama 3, Mistral), Qwen2, Qwen3
// and Gemma 3. They share one forward pass; what differs (biases, head norms,
// post-norms, windows, rotary bases) is held by the layers. See LoadDecoder.
type Llama struct {
	config Config
	blocks int
	slots  int // of host memory

	embedding      Matrix // on the first stage's backend
	embeddingScale float32
	stages         []stage // at least one
	norm           Norm    // on the last stage's backend, as is the output
	output         Matrix
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

// Close frees the weights, the cache and the backends they live on.
func (m *Llama) Close() error {
	var err error
	for i := range m.stages {
		err = errors.Join(err, m.stages[i].ops.Close())
	}
	return err
}

// last is the stage that has the output matrix.
func (m *Llama) last() *stage { return &m.stages[len(m.stages)-1] }

// Forward runs the batch and returns one row of logits for each requested row,
// in batch order. Rows stay valid until the next call. A batch that does not fit
// the model fails with ErrBatch and leaves the cache as it was.
func (m *Llama) Forward(b Batch) ([][]float32, error) {
	if err := m.run(b); err != nil {
		return nil, err
	}
	last := m.last()
	return last.ops.Logits(last.x, m.norm, m.output)
}

// run is the step up to the last layer.
func (m *Llama) run(b Batch) error {
	if err := m.check(b); err != nil {
		return err
	}
	first := &m.stages[0]
	first.ops.Begin(b)
	first.ops.Embed(first.x, m.embedding, m.embeddingScale)
	first.run()
	for i := range m.stages[1:] {
		s := &m.stages[i+1]
		if err := s.follow(&m.stages[i], b); err != nil {
			return err
		}
		s.run()
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
