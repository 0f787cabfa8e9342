package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ragd/inference/cpu"
	"ragd/inference/encode"
	"ragd/ingest"
	"ragd/retrieve"
)

// embedder is the encoder as both roads see it.
type embedder struct{ *encode.Encoder }

var (
	_ ingest.Embedder   = (*embedder)(nil)
	_ retrieve.Embedder = (*embedder)(nil)
)

// openEmbedder loads the embedding model.
func (a *App) openEmbedder(ctx context.Context) error {
	path, err := a.ensure(ctx, a.cfg.Models.Embedding)
	if err != nil {
		return err
	}
	ops, err := a.newBackend(cpu.Config{Pool: a.threads, Background: true})
	if err != nil {
		return err
	}
	// Passages give way to answers; a question's own embedding is part of its answer.
	e, err := encode.Open(ctx, path, ops, encode.Config{Urgency: urgency(ops)})
	if err != nil {
		return fmt.Errorf("embedding model: %w", errors.Join(err, ops.Close()))
	}
	a.log.Info("embedding model is loaded", "model", e.Model(), "dimensions", e.Dim(), "max_tokens", e.MaxTokens())
	a.embed = &embedder{e}
	a.onClose(closing(e))
	return nil
}

// EmbedPassages encodes texts; the first that cannot be encoded is the error.
func (e *embedder) EmbedPassages(ctx context.Context, texts []string) ([]ingest.Embedding, error) {
	return passages(e.Encoder.EmbedPassages(ctx, texts))
}

// EmbedQuery encodes a question of any length. One longer than the model takes is
// cut between words into parts that fit, and its vector is the mean of theirs. Of one
// that is far longer Unread says what is left out.
func (e *embedder) EmbedQuery(ctx context.Context, text string) ([]float32, int, error) {
	parts, _ := e.read(text)
	return e.embedParts(parts, func(part string) ([]float32, int, error) { return e.Encoder.EmbedQuery(ctx, part) })
}

// questionParts is how many parts of a question are read, half of them from its
// beginning and half from its end, where what is asked stands: about 2,000 to 4,000
// tokens. Without a bound the longest question that is let in takes as long as some
// hundred others.
const questionParts = 8

// Unread is how many tokens in the middle of a question are not read.
func (e *embedder) Unread(text string) int {
	if len(text) < e.MaxTokens() { // no token is shorter than a byte
		return 0
	}
	_, left := e.read(text)
	tokens := 0
	for _, p := range left {
		tokens += e.CountPassage(p) - e.CountPassage("")
	}
	return tokens
}

// read returns the parts of a question that are read and those that are left out.
func (e *embedder) read(text string) (parts, left []string) {
	parts = e.parts(text)
	if len(parts) <= questionParts {
		return parts, nil
	}
	const half = questionParts / 2
	end := len(parts) - half
	return append(slices.Clone(parts[:half]), parts[end:]...), parts[half:end]
}

// embedParts encodes the parts of a question one after the other.
func (e *embedder) embedParts(parts []string, embed func(part string) ([]float32, int, error)) ([]float32, int, error) {
	if len(parts) == 1 {
		v, tokens, err := embed(parts[0])
		return v, tokens, unavailable(err)
	}
	sum := make([]float32, e.Dim())
	total := 0
	for _, p := range parts {
		v, tokens, err := embed(p)
		if err != nil {
			return nil, 0, unavailable(err)
		}
		total += tokens
		for i, x := range v {
			sum[i] += x
		}
	}
	return unit(sum), total, nil
}

// parts cuts text in halves until each fits the model.
func (e *embedder) parts(text string) []string {
	// A question takes no more tokens than a passage but for the prefix, whose few
	// tokens the margin covers.
	const margin = 8
	if e.CountPassage(text)+margin <= e.MaxTokens() || len(text) < 2 {
		return []string{text}
	}
	at := middle(text)
	var out []string
	for _, half := range []string{text[:at], text[at:]} {
		if strings.TrimSpace(half) != "" {
			out = append(out, e.parts(half)...)
		}
	}
	return out
}

// middle is the space nearest to the middle of text, or, where there is none
// close by, a character's border.
func middle(text string) int {
	half := len(text) / 2
	if i := strings.IndexAny(text[half:min(len(text), half+half/2)], " \n\t"); i > 0 {
		return half + i
	}
	for half > 0 && text[half]&0xC0 == 0x80 {
		half--
	}
	return max(half, 1)
}

func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return v
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= scale
	}
	return v
}
