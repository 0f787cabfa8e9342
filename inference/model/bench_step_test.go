package model_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"ragd/inference/cpu"
	"ragd/inference/model"
	"ragd/internal/testenv"
)

// BenchmarkSmolLM2Steps is what a step costs by what is in it: some rows that are
// all checked, as drafts are, and a piece of a prompt beside an answer.
func BenchmarkSmolLM2Steps(b *testing.B) {
	const deepest = 4096
	m := loadFile(b, testenv.Model(b, smolLM2), cpu.Config{}, 2*deepest)
	blocks := table(m, 2*deepest)
	prompt, answer := blocks[:deepest/model.BlockTokens], blocks[deepest/model.BlockTokens:]
	tokens := make([]int32, 256)
	for i := range tokens {
		tokens[i] = int32(i*7919%48000 + 100)
	}
	// The shortest step is told too: neighbours make a step longer, never shorter.
	step := func(b *testing.B, batch ...model.Piece) {
		shortest := time.Duration(math.MaxInt64)
		for b.Loop() {
			began := time.Now()
			if _, err := m.Forward(batch); err != nil {
				b.Fatal(err)
			}
			shortest = min(shortest, time.Since(began))
		}
		b.ReportMetric(shortest.Seconds()*1e3, "ms/shortest")
		b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/step")
		b.ReportMetric(0, "ns/op")
	}
	for _, depth := range []int{0, 512, 2048} {
		for _, rows := range []int{1, 2, 3, 4, 5, 8, 9, 16} {
			b.Run(fmt.Sprintf("check/rows=%d/depth=%d", rows, depth), func(b *testing.B) {
				step(b, model.Piece{Tokens: tokens[:rows], Start: depth, Blocks: prompt, Logits: rows})
			})
		}
	}
	for _, depth := range []int{0, 2000, 3800} {
		for _, rows := range []int{1, 2, 4, 8, 16, 32, 64} {
			b.Run(fmt.Sprintf("beside/rows=%d/depth=%d", rows, depth), func(b *testing.B) {
				step(b,
					model.Piece{Tokens: tokens[:1], Start: 64, Blocks: answer, Logits: 1},
					model.Piece{Tokens: tokens[:rows], Start: depth, Blocks: prompt})
			})
		}
	}
}
