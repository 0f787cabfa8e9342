package encode

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"ragd/inference/model"
	"ragd/inference/tokenizer"
)

// CrossEncoder scores pairs of question and passage, which it reads together. It
// is safe for concurrent use: calls take turns batch by batch.
type CrossEncoder struct {
	model   *model.BERT
	tokens  tokenizer.Tokenizer
	name    string
	batch   int
	limit   int // tokens of a pair
	sigmoid bool
	gate    gate
}

// PairScore says how well a passage answers the question.
type PairScore struct {
	// Score is what the model's recipe makes of the one output: between 0 and 1
	// where it is a sigmoid, any number where it is raw. Only the order and the
	// spacing of scores of one model mean anything.
	Score float32
	// Tokens is what the model was given: the pair with its special tokens.
	Tokens int
	// Cut is how many tokens at the passage's end did not fit and were left out.
	Cut int
}

// OpenCross loads the cross-encoder at path, a GGUF file or a Hugging Face folder
// (BertForSequenceClassification, XLMRobertaForSequenceClassification), and tries
// it on a pair, so that a broken one is found here. The encoder owns ops from then
// on; on an error the caller still does. A model without a head of one output is
// ErrNoHead; other errors are those of Open.
func OpenCross(ctx context.Context, path string, ops model.Ops, cfg Config) (*CrossEncoder, error) {
	m, t, err := open(ctx, path, ops, &cfg)
	if err != nil {
		return nil, err
	}
	c := m.Config()
	switch {
	case c.Labels == 0:
		return nil, fmt.Errorf("%w: %s has no classification head", ErrNoHead, path)
	case c.Labels > 1:
		return nil, fmt.Errorf("%w: %s has %d outputs, a reranker has one", ErrNoHead, path, c.Labels)
	}
	r, err := readRecipe(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	e := &CrossEncoder{model: m, tokens: t, name: modelName(c.Name), batch: cfg.BatchTokens, limit: c.Context, sigmoid: r.sigmoid, gate: gate{urgency: cfg.Urgency}}
	if r.limit > 0 {
		e.limit = min(e.limit, r.limit)
	}
	if _, err := e.ScorePairs(ctx, "?", []string{"."}); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Clean(path), err)
	}
	return e, nil
}

func modelName(name string) string { return strings.ReplaceAll(name, " ", "-") }

// Model is the model's name.
func (c *CrossEncoder) Model() string { return c.name }

// MaxTokens is the longest pair, special tokens included.
func (c *CrossEncoder) MaxTokens() int { return c.limit }

// Whole says that the head has its dense layer (BERT's pooler). Converters to GGUF
// drop that of BERT; the scores are then not those of the original model.
func (c *CrossEncoder) Whole() bool { return c.model.Config().Dense }

// Close waits for the batches in line and frees the model. Batches that come later
// fail with ErrClosed.
func (c *CrossEncoder) Close() error {
	if err := c.gate.close(); err != nil {
		return err
	}
	return c.model.Close()
}

// ScorePairs scores passages against a question, results in the order of passages.
// A passage too long for what the question leaves loses its end, and its Cut says
// how much; the question is never cut: one that leaves less than 16 tokens of a
// longer passage is ErrTooLong, a blank one ErrBlank. ctx is looked at between
// batches. An error leaves no results.
func (c *CrossEncoder) ScorePairs(ctx context.Context, question string, passages []string) ([]PairScore, error) {
	if strings.IndexFunc(question, visible) < 0 {
		return nil, fmt.Errorf("question: %w", ErrBlank)
	}
	results := make([]PairScore, len(passages))
	rest, err := c.join(question, passages, results)
	if err != nil {
		return nil, err
	}
	for len(rest) > 0 {
		n := take(rest, c.batch)
		if err := c.pass(ctx, rest[:n], results); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return results, nil
}

// join tokenises the pairs, longest first.
func (c *CrossEncoder) join(question string, passages []string, results []PairScore) ([]input, error) {
	first := c.tokens.Encode(nil, question)
	inputs := make([]input, len(passages))
	var second []int32
	for i, text := range passages {
		second = c.tokens.Encode(second[:0], text)
		p, err := tokenizer.Join(c.tokens, first, second, c.limit)
		if errors.Is(err, tokenizer.ErrNoRoom) {
			return nil, fmt.Errorf("question: %w: of the %d tokens of a pair it takes %d", ErrTooLong, c.limit, len(first))
		}
		if err != nil {
			return nil, err
		}
		inputs[i] = input{index: i, tokens: p.Tokens, second: p.Second}
		results[i] = PairScore{Tokens: len(p.Tokens), Cut: p.Cut}
	}
	longestFirst(inputs)
	return inputs, nil
}

// pass runs one batch through the model.
func (c *CrossEncoder) pass(ctx context.Context, batch []input, results []PairScore) error {
	texts := make([]model.Text, len(batch))
	for i, in := range batch {
		texts[i] = model.Text{Tokens: in.tokens, Second: in.second}
	}
	// A question waits for its pairs, so they are as urgent as it.
	if err := c.gate.enter(ctx, true); err != nil {
		return err
	}
	defer c.gate.leave()
	scores, err := c.model.Score(texts)
	if err != nil {
		return err
	}
	for i, in := range batch {
		if !finite(scores[i]) {
			return fmt.Errorf("passage %d: %w", in.index, ErrNotFinite)
		}
		results[in.index].Score = c.activate(scores[i][0])
	}
	return nil
}

func (c *CrossEncoder) activate(x float32) float32 {
	if !c.sigmoid {
		return x
	}
	return float32(1 / (1 + math.Exp(-float64(x))))
}
