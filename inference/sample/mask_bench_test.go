package sample

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ragd/inference/gguf"
	"ragd/inference/tokenizer"
	"ragd/internal/testenv"
)

// smolVocabulary is the vocabulary of SmolLM2.
func smolVocabulary(tb testing.TB) (*Vocabulary, tokenizer.Tokenizer, []float32) {
	tb.Helper()
	f, err := gguf.Open(testenv.Model(tb, "smollm2-135m-instruct"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		tb.Fatal(err)
	}
	const size = 49152
	return NewVocabulary(size, tok.Piece, tok.Special().EndOfGeneration), tok, make([]float32, size)
}

// A mask over the vocabulary of SmolLM2, in the states that an object spends its time in.
func BenchmarkJSONMask(b *testing.B) {
	vocab, tok, row := smolVocabulary(b)
	for _, prefix := range []string{``, `{"key`, `{"key":`, `{"key":"a"`, `{"key":1`} {
		b.Run(fmt.Sprintf("after %q", prefix), func(b *testing.B) {
			j := NewJSON(vocab, tok.Piece)
			for _, id := range tok.Encode(nil, prefix) {
				j.Accept(id)
			}
			for b.Loop() {
				j.Mask(row)
			}
		})
	}
}

// repeat is n schemas made of one, with their number in place of #, in a list.
func repeat(schema string, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.ReplaceAll(schema, "#", fmt.Sprint(i+1))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// masked are schemas, and how answers to them begin, with one position and with as many
// as a schema can have side by side.
var masked = map[string]struct{ schema, prefix string }{
	"string":         {`{"type":"string","maxLength":100}`, `"ab`},
	"object":         {`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":"b`},
	"200 strings":    {`{"anyOf":` + repeat(`{"type":"string","maxLength":#00}`, 200) + `}`, `"ab`},
	"200 lists":      {`{"anyOf":` + repeat(`{"type":"array","maxItems":#000,"items":{"anyOf":[{"type":"string","maxLength":50},{"type":"number"},{"type":"integer"}]}}`, 200) + `}`, `["ab`},
	"values":         {`{"anyOf":` + strings.ReplaceAll(repeat(`{"type":"array","maxItems":#000,"items":{"$ref":"@/$defs/x"}}`, 150), "@", "#") + `,"$defs":{"x":{"anyOf":` + repeat(`{"type":"string","maxLength":#00}`, 250) + `}}}`, `[`},
	"2000 constants": {`{"anyOf":` + repeat(`{"const":"word #"}`, 2000) + `}`, `"wor`},
}

func grammar(tb testing.TB, vocab *Vocabulary, tok tokenizer.Tokenizer, schema, prefix string) *SchemaGrammar {
	tb.Helper()
	s, err := ParseSchema([]byte(schema))
	if err != nil {
		tb.Fatal(err)
	}
	g := NewSchemaGrammar(vocab, tok.Piece, s)
	for _, id := range tok.Encode(nil, prefix) {
		g.Accept(id)
	}
	return g
}

// Whatever the schema, a mask takes no more than some walks over the vocabulary, and one
// more with a single position: all answers that run wait for it.
func TestMaskIsBounded(t *testing.T) {
	vocab, tok, row := smolVocabulary(t)
	nodes := len(vocab.plain) + len(vocab.others)
	const largestStep = maxThreads*300 + maxThreads*maxThreads
	for name, c := range masked {
		g := grammar(t, vocab, tok, c.schema, c.prefix)
		clear(row)
		g.Mask(row)
		if spent := g.full - g.work; spent > g.full+largestStep+2*nodes {
			t.Errorf("%s: a mask took %d units of work for %d nodes", name, spent, nodes)
		}
		if !slices.ContainsFunc(row, func(x float32) bool { return x == 0 }) {
			t.Errorf("%s: every token is ruled out", name)
		}
	}
}

func BenchmarkSchemaMasks(b *testing.B) {
	vocab, tok, row := smolVocabulary(b)
	for name, c := range masked {
		b.Run(name, func(b *testing.B) {
			g := grammar(b, vocab, tok, c.schema, c.prefix)
			for b.Loop() {
				g.Mask(row)
			}
		})
	}
}
