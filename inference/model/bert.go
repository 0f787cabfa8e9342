package model

import (
	"fmt"
	"slices"
)

// BERT is the encoder family: BERT and XLM-RoBERTa, which differ in vocabulary
// and in how a file numbers its positions, not in the pass (arXiv 1810.04805,
// 1911.02116). See LoadEncoder and LoadEncoderFolder.
type BERT struct {
	ops     Ops
	config  EncoderConfig
	input   TextEmbedding
	layers  []encoderLayer
	head    classifier
	x, h    Tensor
	q, k, v Tensor
}

// EncoderConfig describes an encoder. Config.Context is the longest text in
// tokens, special ones included.
type EncoderConfig struct {
	Config
	// Pooling is how the rows of a text become its embedding.
	Pooling Pooling
	// Unit says that embeddings are scaled to length one.
	Unit bool
	// Labels is the number of scores of the classification head, 0 without one.
	Labels int
	// Dense says that the head has a dense layer before its scores.
	Dense bool
	// QueryPrefix and PassagePrefix are put before a text of that kind.
	QueryPrefix, PassagePrefix string
}

type encoderLayer struct {
	qkv       []Projection
	attention Attention
	out       Linear
	norm      Norm
	ffn       FFN
}

type classifier struct{ dense, out Linear }

// Config describes the model.
func (m *BERT) Config() EncoderConfig { return m.config }

// Close frees the weights and the backend they live on.
func (m *BERT) Close() error { return m.ops.Close() }

// Embed returns one vector of Width values a text, in the order given, valid until
// the next call. A text that does not fit the model fails with ErrBatch.
func (m *BERT) Embed(texts []Text) ([][]float32, error) {
	if m.config.Pooling != PoolMean && m.config.Pooling != PoolCLS {
		return nil, fmt.Errorf("%w: %s pools no embeddings (pooling %d)", ErrConfig, m.config.Name, m.config.Pooling)
	}
	if err := m.run(texts); err != nil {
		return nil, err
	}
	return m.ops.Pool(m.x, m.config.Pooling, m.config.Unit)
}

// EmbedRows is Embed that also returns the last hidden state of every token, text
// after text: Width values each, valid until the next call. A backend that keeps them
// to itself gives ErrNoStage.
func (m *BERT) EmbedRows(texts []Text) (vectors [][]float32, rows []float32, err error) {
	ops, ok := m.ops.(StageOps)
	if !ok {
		return nil, nil, fmt.Errorf("%s: %w", m.ops.Name(), ErrNoStage)
	}
	pooled, err := m.Embed(texts)
	if err != nil {
		return nil, nil, err
	}
	vectors = make([][]float32, len(pooled))
	for i, v := range pooled {
		vectors[i] = slices.Clone(v)
	}
	rows, err = ops.Rows(m.x)
	return vectors, rows, err
}

// Score returns Labels raw scores a text (a pair of query and passage), valid
// until the next call.
func (m *BERT) Score(texts []Text) ([][]float32, error) {
	if m.config.Labels == 0 {
		return nil, fmt.Errorf("%w: %s has no classification head", ErrConfig, m.config.Name)
	}
	if err := m.run(texts); err != nil {
		return nil, err
	}
	return m.ops.Classify(m.x, m.head.dense, m.head.out)
}

// run is the forward pass, up to the last layer.
func (m *BERT) run(texts []Text) error {
	if err := m.check(texts); err != nil {
		return err
	}
	m.ops.BeginTexts(texts)
	m.ops.EmbedTexts(m.x, &m.input)
	for i := range m.layers {
		l := &m.layers[i]
		m.ops.Project(m.x, Norm{}, l.qkv...)
		m.ops.AttendTexts(m.h, m.q, m.k, m.v, l.attention)
		m.ops.ResidualNorm(m.x, m.h, l.out, l.norm)
		m.ops.FeedForwardNorm(m.x, &l.ffn)
	}
	return nil
}

func (m *BERT) check(texts []Text) error {
	if len(texts) == 0 {
		return fmt.Errorf("%w: no texts", ErrBatch)
	}
	for i := range texts {
		n := len(texts[i].Tokens)
		if n == 0 || n > m.config.Context {
			return fmt.Errorf("%w: text %d has %d tokens (1 to %d)", ErrBatch, i, n, m.config.Context)
		}
		if s := texts[i].Second; s < 0 || s > n {
			return fmt.Errorf("%w: text %d: second segment at %d of %d tokens", ErrBatch, i, s, n)
		}
		for _, t := range texts[i].Tokens {
			if t < 0 || int(t) >= m.config.Vocab {
				return fmt.Errorf("%w: text %d: token %d is outside the vocabulary of %d", ErrBatch, i, t, m.config.Vocab)
			}
		}
	}
	return nil
}
