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

// Score returns the sentence scores that are there.
func (BestSentence) Score(_ context.Context, _ retrieve.Query, hits []retrieve.Hit) (Rating, error) {
	out := make([]float32, len(hits))
	for i := range hits {
		h := &hits[i]
		out[i] = h.Scores.Dense
		if len(h.SentenceVectors) > 0 {
			out[i] = h.Scores.Sentence
		}
	}
	return Rating{Scores: out}, nil
}

// bestSentences fills Scores.Sentence and Scores.SentenceBest, which count as
// evidence whatever the scorer.
func bestSentences(q retrieve.Query, hits []retrieve.Hit) {
	for i := range hits {
		h := &hits[i]
		for j, v := range h.SentenceVectors {
			if cos := Cosine(q.Vector, v); j == 0 || cos > h.Scores.Sentence {
				h.Scores.Sentence, h.Scores.SentenceBest = cos, j
			}
		}
	}
}

// None scores nothing: the order of the search stands.
type None struct{}

// Name is "none".
func (None) Name() string { return "none" }

// Score rates no hit.
func (None) Score(context.Context, retrieve.Query, []retrieve.Hit) (Rating, error) {
	return Rating{}, nil
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
