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
	err = e.embed(ctx, work{prefix: e.config.QueryPrefix, texts: []string{text}, results: result, urgent: true})
	return result[0].Vector, result[0].Tokens, err
}

// EmbedPassages embeds passages, results in the order of texts. A text that is
// blank or too long spoils itself only: its Err is set, the others are encoded,
// and the error joins all of these *TextErrors. Any other error, the
// cancellation of ctx between two batches included, leaves no results.
func (e *Encoder) EmbedPassages(ctx context.Context, texts []string) ([]Embedding, error) {
	results := make([]Embedding, len(texts))
	err := e.embed(ctx, work{prefix: e.config.PassagePrefix, texts: texts, results: results})
	var text *TextError
	if err != nil && !errors.As(err, &text) {
		return nil, err
	}
	return results, err
}

// work is texts to embed.
type work struct {
	prefix  string
	texts   []string
	results []Embedding
	urgent  bool
	// keep is given the last hidden states of each text's tokens, which are valid
	// during the call; nil where nobody wants them.
	keep func(in input, rows []float32)
}

// embed fills the results. It fails at once when the model or ctx does, and joins
// what is wrong with single texts.
func (e *Encoder) embed(ctx context.Context, w work) error {
	results := w.results
	inputs := e.tokenize(w.prefix, w.texts, results)
	for rest := inputs; len(rest) > 0; {
		n := take(rest, e.batch)
		if err := e.pass(ctx, rest[:n], w); err != nil {
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
func (e *Encoder) pass(ctx context.Context, batch []input, w work) error {
	texts := make([]model.Text, len(batch))
	for i := range batch {
		texts[i].Tokens = batch[i].tokens
	}
	if err := e.gate.enter(ctx, w.urgent); err != nil {
		return err
	}
	defer e.gate.leave()
	vectors, rows, err := e.run(texts, w.keep != nil)
	if err != nil {
		return err
	}
	first := 0 // row of the text
	for i := range batch {
		r, n := &w.results[batch[i].index], len(batch[i].tokens)
		first += n
		if !finite(vectors[i]) {
			r.Err = &TextError{Index: batch[i].index, Tokens: r.Tokens, Max: e.MaxTokens(), Err: ErrNotFinite}
			continue
		}
		r.Vector = slices.Clone(vectors[i])
		if w.keep != nil {
			w.keep(batch[i], rows[(first-n)*e.Dim():first*e.Dim()])
		}
	}
	return nil
}

// run gives texts to the model, and returns the states of all their tokens where
// they are wanted.
func (e *Encoder) run(texts []model.Text, states bool) (vectors [][]float32, rows []float32, err error) {
	if states {
		return e.model.EmbedRows(texts)
	}
	vectors, err = e.model.Embed(texts)
	return vectors, nil, err
}

func finite(v []float32) bool {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return false
		}
	}
	return true
}
