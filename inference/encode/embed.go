package encode

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"

	"ragd/inference/model"
	"ragd/inference/tokenizer"
)

// EmbedQuery embeds a search query and tells how many tokens the model was given.
// It goes before waiting passages. A query that cannot be encoded is a *TextError.
func (e *Encoder) EmbedQuery(ctx context.Context, text string) (vector []float32, tokens int, err error) {
	result := make([]Embedding, 1)
	err = e.embed(ctx, e.config.QueryPrefix, []string{text}, result, true)
	return result[0].Vector, result[0].Tokens, err
}

// EmbedPassages embeds passages, results in the order of texts. A text that is
// blank or too long spoils itself only: its Err is set, the others are encoded,
// and the error joins all of these *TextErrors. Any other error, the
// cancellation of ctx between two batches included, leaves no results.
func (e *Encoder) EmbedPassages(ctx context.Context, texts []string) ([]Embedding, error) {
	results := make([]Embedding, len(texts))
	err := e.embed(ctx, e.config.PassagePrefix, texts, results, false)
	var text *TextError
	if err != nil && !errors.As(err, &text) {
		return nil, err
	}
	return results, err
}

// embed fills results. It fails at once when the model or ctx does, and joins
// what is wrong with single texts.
func (e *Encoder) embed(ctx context.Context, prefix string, texts []string, results []Embedding, urgent bool) error {
	inputs := e.tokenize(prefix, texts, results)
	for rest := inputs; len(rest) > 0; {
		n := take(rest, e.batch)
		if err := e.pass(ctx, rest[:n], results, urgent); err != nil {
			return err
		}
		rest = rest[n:]
	}
	var faults []error
	for i := range results {
		if results[i].Err != nil {
			faults = append(faults, results[i].Err)
		}
	}
	return errors.Join(faults...)
}

// input is a text that fits the model.
type input struct {
	index  int
	tokens []int32
	second int // where the second segment of a pair begins
}

// tokenize returns the texts that fit, longest first, so that a batch holds texts
// of like length and the last ones are short.
func (e *Encoder) tokenize(prefix string, texts []string, results []Embedding) []input {
	inputs := make([]input, 0, len(texts))
	for i, text := range texts {
		if strings.IndexFunc(text, visible) < 0 {
			results[i].Err = &TextError{Index: i, Max: e.MaxTokens(), Err: ErrBlank}
			continue
		}
		tokens := tokenizer.Raw(e.tokens, prefix+text)
		results[i].Tokens = len(tokens)
		if len(tokens) > e.MaxTokens() {
			results[i].Err = &TextError{Index: i, Tokens: len(tokens), Max: e.MaxTokens(), Err: ErrTooLong}
			continue
		}
		inputs = append(inputs, input{index: i, tokens: tokens})
	}
	longestFirst(inputs)
	return inputs
}

func longestFirst(inputs []input) {
	slices.SortStableFunc(inputs, func(a, b input) int { return cmp.Compare(len(b.tokens), len(a.tokens)) })
}

// visible reports whether a character leaves something to encode.
func visible(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }

// take is the number of inputs that make the next batch of at most limit tokens.
func take(inputs []input, limit int) int {
	n, tokens := 0, 0
	for n < len(inputs) && (n == 0 || tokens+len(inputs[n].tokens) <= limit) {
		tokens += len(inputs[n].tokens)
		n++
	}
	return n
}

// pass runs one batch through the model.
func (e *Encoder) pass(ctx context.Context, batch []input, results []Embedding, urgent bool) error {
	texts := make([]model.Text, len(batch))
	for i := range batch {
		texts[i].Tokens = batch[i].tokens
	}
	if err := e.gate.enter(ctx, urgent); err != nil {
		return err
	}
	defer e.gate.leave()
	vectors, err := e.model.Embed(texts)
	if err != nil {
		return err
	}
	for i := range batch {
		r := &results[batch[i].index]
		if !finite(vectors[i]) {
			r.Err = &TextError{Index: batch[i].index, Tokens: r.Tokens, Max: e.MaxTokens(), Err: ErrNotFinite}
			continue
		}
		r.Vector = slices.Clone(vectors[i])
	}
	return nil
}

func finite(v []float32) bool {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return false
		}
	}
	return true
}
