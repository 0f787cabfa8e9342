package rerank

import (
	"context"

	"ragd/retrieve"
)

// BestSentence scores a chunk by the cosine of the question and its best
// sentence. Sentence vectors were made at ingest, so this costs a few dot
// products. A chunk without them is scored by its own cosine.
type BestSentence struct{}

// Name is "best-sentence".
func (BestSentence) Name() string { return "best-sentence" }

// Score fills Scores.Sentence and Scores.SentenceBest.
func (BestSentence) Score(_ context.Context, q retrieve.Query, hits []retrieve.Hit) ([]float32, error) {
	out := make([]float32, len(hits))
	for i := range hits {
		h := &hits[i]
		out[i] = h.Scores.Dense
		for j, v := range h.SentenceVectors {
			if cos := Cosine(q.Vector, v); j == 0 || cos > h.Scores.Sentence {
				h.Scores.Sentence, h.Scores.SentenceBest = cos, j
			}
		}
		if len(h.SentenceVectors) > 0 {
			out[i] = h.Scores.Sentence
		}
	}
	return out, nil
}

// Cosine is the dot product of two unit vectors; 0 when their lengths differ.
func Cosine(a, b []float32) float32 {
	if len(a) != len(b) {
		return 0
	}
	var s float32
	for i, x := range a {
		s += x * b[i]
	}
	return s
}
