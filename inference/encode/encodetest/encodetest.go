// Package encodetest makes tiny cross-encoders with random weights for tests, in
// both containers, and holds the scores that a reference gives for them.
package encodetest

import (
	_ "embed"
	"encoding/json"
	"testing"
)

//go:embed testdata/cross_golden.json
var golden []byte

// Family is a kind of cross-encoder.
type Family string

// The families at hand.
const (
	BERT       Family = "bert"
	XLMRoBERTa Family = "xlm-roberta"
)

// Families lists them.
func Families() []Family { return []Family{BERT, XLMRoBERTa} }

// Case is a pair with what the reference makes of it.
type Case struct {
	Question, Passage string
	// Tokens is the pair as the model reads it, Second where token type 1
	// begins (0 for nowhere), Cut how many tokens of the passage are left out.
	Tokens      []int32
	Second, Cut int
	// Score is the raw score, Direct that of a head without its dense layer.
	Score, Direct float32
	// Llama is llama.cpp's score, to three digits; 0 where it was not asked.
	Llama float32
}

// Context is the longest pair of the tiny models, in tokens.
const Context = 48

// Shape is the size of a model.
type Shape struct{ Width, Layers, Heads, FeedForward, Context int }

// Tiny is the shape that the golden scores are for.
func Tiny() Shape { return Shape{Width: 48, Layers: 2, Heads: 4, FeedForward: 80, Context: Context} }

// MiniLM is the shape of the common small rerankers, for measuring speed.
func MiniLM() Shape { return Shape{Width: 384, Layers: 6, Heads: 12, FeedForward: 1536, Context: 512} }

type family struct {
	Tokenizer json.RawMessage
	Types     int
	Cases     []Case
}

func read(t testing.TB, f Family) family {
	t.Helper()
	var file struct{ Families map[Family]family }
	if err := json.Unmarshal(golden, &file); err != nil {
		t.Fatal(err)
	}
	of, ok := file.Families[f]
	if !ok || len(of.Cases) == 0 {
		t.Fatalf("the golden file has no cases of %q", f)
	}
	return of
}

// Cases returns the golden cases of a family.
func Cases(t testing.TB, f Family) []Case {
	t.Helper()
	return read(t, f).Cases
}
