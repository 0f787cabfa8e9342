// Package fuse makes one order of two: of what the meaning finds and what the
// words find. It is pure.
package fuse

import "fmt"

// Candidate is a chunk that one of the searches or both found. Both scores are
// exact, also the one of the search that did not list it.
type Candidate struct {
	Cosine float32
	BM25   float32 // 0 when no word of the question is in the chunk
	// The places in the two lists, from 1; 0 for not listed.
	DenseRank, LexicalRank int
}

// Score is a candidate's score and its two parts on the scale they were added in.
type Score struct{ Fused, Dense, Lexical float32 }

// Method names a way of fusing.
type Method string

// The methods.
const (
	// Convex adds the scores themselves, each brought to a common scale.
	Convex Method = "convex"
	// ReciprocalRank adds the inverses of the ranks.
	ReciprocalRank Method = "rank"
)

// Methods lists the valid values.
var Methods = []string{string(Convex), string(ReciprocalRank)}

// Fuse scores the candidates, in the order given, by the named method. dense is
// the weight of the dense side, from 0 to 1; the lexical side has the rest.
func Fuse(m Method, list []Candidate, dense float32) ([]Score, error) {
	switch m {
	case Convex:
		return ConvexCombination(list, dense), nil
	case ReciprocalRank:
		return ReciprocalRanks(list, dense), nil
	}
	return nil, fmt.Errorf("fuse: method %q is not one of %v", m, Methods)
}

// ConvexCombination is dense·D + (1−dense)·L, where D stretches the cosines so that
// those of the dense list span 0 to 1, and L is BM25 over its maximum (Bruch and
// others, "An Analysis of Fusion Functions for Hybrid Retrieval", 2022, arXiv
// 2210.11934). D depends on the span alone, so it suits any embedding model. It is
// never below 0: the span of a large corpus is narrow, and a chunk that holds the
// very words of the question would else be lost for lying a little outside.
func ConvexCombination(list []Candidate, dense float32) []Score {
	lo, hi := cosines(list)
	var most float32
	for _, c := range list {
		most = max(most, c.BM25)
	}
	out := make([]Score, len(list))
	for i, c := range list {
		s := &out[i]
		s.Dense = max(stretch(c.Cosine, lo, hi), 0)
		if most > 0 {
			s.Lexical = c.BM25 / most
		}
		s.Fused = dense*s.Dense + (1-dense)*s.Lexical
	}
	return out
}

// cosines is the span of the dense list.
func cosines(list []Candidate) (lo, hi float32) {
	first := true
	for _, c := range list {
		if c.DenseRank == 0 {
			continue
		}
		if first {
			lo, hi, first = c.Cosine, c.Cosine, false
		}
		lo, hi = min(lo, c.Cosine), max(hi, c.Cosine)
	}
	return lo, hi
}

// stretch maps lo to 0 and hi to 1. Without a span, all that reach it are equal.
func stretch(v, lo, hi float32) float32 {
	switch {
	case hi > lo:
		return (v - lo) / (hi - lo)
	case v >= hi:
		return 1
	}
	return 0
}

// rankConstant dampens the lead of the first places (Cormack and others,
// "Reciprocal Rank Fusion", 2009).
const rankConstant = 60

// ReciprocalRanks is dense/(60+r) + (1−dense)/(60+s) over the ranks r and s. A
// candidate without a word of the question has no lexical rank, whatever it says:
// the order of zeros means nothing.
func ReciprocalRanks(list []Candidate, dense float32) []Score {
	out := make([]Score, len(list))
	for i, c := range list {
		s := &out[i]
		if c.DenseRank > 0 {
			s.Dense = 1 / float32(rankConstant+c.DenseRank)
		}
		if c.LexicalRank > 0 && c.BM25 > 0 {
			s.Lexical = 1 / float32(rankConstant+c.LexicalRank)
		}
		s.Fused = dense*s.Dense + (1-dense)*s.Lexical
	}
	return out
}
