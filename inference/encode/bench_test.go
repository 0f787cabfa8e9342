package encode_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/encode"
)

// Passages of 20 to 240 tokens, as a chunker makes them, on multilingual-e5-small.
func BenchmarkPassages(b *testing.B) {
	texts := make([]string, 32)
	for i := range texts {
		texts[i] = strings.Repeat("The clerk writes down every ship that enters. 배의 이름과 짐을 적는다. ", 1+i%10)
	}
	benchmarkPassages(b, texts)
}

// Sentences of about 20 tokens, which are most of what an ingest embeds.
func BenchmarkSentences(b *testing.B) {
	texts := make([]string, 64)
	for i := range texts {
		texts[i] = fmt.Sprintf("The clerk writes down every ship that enters, today number %d of them.", 1000+i)
	}
	benchmarkPassages(b, texts)
}

// A query alone, as a question waits for it.
func BenchmarkQuery(b *testing.B) {
	e := open(b, "multilingual-e5-small", cpu.Config{}, encode.Config{})
	for b.Loop() {
		if _, _, err := e.EmbedQuery(context.Background(), "Who writes down the names of the ships?"); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkPassages(b *testing.B, texts []string) {
	e := open(b, "multilingual-e5-small", cpu.Config{}, encode.Config{})
	tokens := 0
	for b.Loop() {
		results, err := e.EmbedPassages(context.Background(), texts)
		if err != nil {
			b.Fatal(err)
		}
		for i := range results {
			tokens += results[i].Tokens
		}
	}
	b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "passages/s")
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tok/s")
}
