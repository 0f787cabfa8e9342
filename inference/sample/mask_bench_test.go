package sample_test

import (
	"fmt"
	"testing"

	"ragd/inference/gguf"
	"ragd/inference/sample"
	"ragd/inference/tokenizer"
	"ragd/internal/testenv"
)

// A mask over the vocabulary of SmolLM2, in the states that an object spends its time in.
func BenchmarkJSONMask(b *testing.B) {
	f, err := gguf.Open(testenv.Model(b, "smollm2-135m-instruct"))
	if err != nil {
		b.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		b.Fatal(err)
	}
	const size = 49152
	vocab := sample.NewVocabulary(size, tok.Piece, tok.Special().EndOfGeneration)
	defer f.Close()
	row := make([]float32, size)
	for _, prefix := range []string{``, `{"key`, `{"key":`, `{"key":"a"`, `{"key":1`} {
		b.Run(fmt.Sprintf("after %q", prefix), func(b *testing.B) {
			j := sample.NewJSON(vocab, tok.Piece)
			for _, id := range tok.Encode(nil, prefix) {
				j.Accept(id)
			}
			for b.Loop() {
				j.Mask(row)
			}
		})
	}
}
