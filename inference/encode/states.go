package encode

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"ragd/inference/tokenizer"
)

// States are the last hidden states of a passage's content tokens, those that are
// neither special nor of the prefix, each scaled to length one: int8 with one scale a
// token.
type States struct {
	Scales []float32 // one a token
	Values []int8    // Dim a token; value × scale is within half a scale of the state
}

// QueryStates are the states of a query's content tokens in float32.
type QueryStates struct {
	Rows []float32 // Dim a token
	// Weights say how much a token counts: its rarity (the negative logarithm of its
	// probability) where the vocabulary tells, else 1.
	Weights []float32
}

// EmbedQueryStates is EmbedQuery with the states of the query's tokens, out of the
// same pass.
func (e *Encoder) EmbedQueryStates(ctx context.Context, text string) (vector []float32, states QueryStates, tokens int, err error) {
	result := make([]Embedding, 1)
	err = e.embed(ctx, work{prefix: e.config.QueryPrefix, texts: []string{text}, results: result, urgent: true, keep: func(in input, rows []float32) {
		for _, i := range e.content(in.tokens, e.config.QueryPrefix) {
			states.Rows = append(states.Rows, rows[i*e.Dim():(i+1)*e.Dim()]...)
			states.Weights = append(states.Weights, e.rarity(in.tokens[i]))
		}
	}})
	return result[0].Vector, states, result[0].Tokens, err
}

// EmbedPassageStates is EmbedPassages with the states of the texts that are wanted,
// at most limit tokens of each: the rarest, in the order of the text.
func (e *Encoder) EmbedPassageStates(ctx context.Context, texts []string, wanted []bool, limit int) ([]Embedding, error) {
	results := make([]Embedding, len(texts))
	err := e.embed(ctx, work{prefix: e.config.PassagePrefix, texts: texts, results: results, keep: func(in input, rows []float32) {
		if wanted[in.index] {
			kept := e.rarest(in.tokens, e.content(in.tokens, e.config.PassagePrefix), limit)
			results[in.index].States = quantize(rows, kept, e.Dim())
		}
	}})
	var text *TextError
	if err != nil && !errors.As(err, &text) {
		return nil, err
	}
	return results, err
}

// content lists the places of the tokens that are the text's own. Where prefix and
// text run into one token, it counts as the text's.
func (e *Encoder) content(tokens []int32, prefix string) []int {
	front := e.tokens.Encode(nil, prefix)
	var out []int
	for i, id := range tokens {
		if e.tokens.Control(id) {
			continue
		}
		if len(front) > 0 && len(out) == 0 && front[0] == id {
			front = front[1:]
			continue
		}
		front = nil
		out = append(out, i)
	}
	return out
}

// rarity is the weight of a token.
func (e *Encoder) rarity(id int32) float32 {
	if p, ok := tokenizer.LogProb(e.tokens, id); ok {
		return -p
	}
	return 1
}

// rarest keeps at most limit of the places, those of the rarest tokens.
func (e *Encoder) rarest(tokens []int32, places []int, limit int) []int {
	if len(places) <= limit {
		return places
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(e.rarity(tokens[b]), e.rarity(tokens[a])) })
	places = places[:limit]
	slices.Sort(places)
	return places
}

// quantize rounds some of the rows, scaled to length one, to int8.
func quantize(rows []float32, places []int, dim int) *States {
	s := &States{Scales: make([]float32, len(places)), Values: make([]int8, 0, len(places)*dim)}
	for i, p := range places {
		row := rows[p*dim : (p+1)*dim]
		var most, square float32
		for _, x := range row {
			most, square = max(most, x, -x), square+x*x
		}
		inverse := float32(0)
		if most > 0 {
			inverse = 127 / most
			s.Scales[i] = most / 127 / float32(math.Sqrt(float64(square)))
		}
		for _, x := range row {
			s.Values = append(s.Values, int8(math.RoundToEven(float64(x*inverse))))
		}
	}
	return s
}
