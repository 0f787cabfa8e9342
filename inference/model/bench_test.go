package model_test

import (
	"fmt"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/model"
	"ragd/internal/testenv"
)

// Names as llama-bench has them: pp512 is a prompt of 512 tokens, tg64 is 64
// tokens one by one, @d2048 after 2,048 others.
func BenchmarkSmolLM2(b *testing.B) {
	m := loadFile(b, testenv.Model(b, smolLM2), cpu.Config{}, 2560)
	blocks := table(m, 2560)
	tokens := make([]int32, 2048)
	for i := range tokens {
		tokens[i] = int32(i*7919%48000 + 100)
	}
	run := func(b *testing.B, tokens []int32, start int) {
		if _, err := m.Forward(model.Batch{{Tokens: tokens, Start: start, Blocks: blocks, Logits: 1}}); err != nil {
			b.Fatal(err)
		}
	}
	for _, n := range []int{512, 2048} {
		b.Run(fmt.Sprintf("pp%d", n), func(b *testing.B) {
			for b.Loop() {
				for at := 0; at < n; at += 512 {
					run(b, tokens[at:at+512], at)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tok/s")
		})
	}
	for _, depth := range []int{0, 2048} {
		b.Run(fmt.Sprintf("tg64@d%d", depth), func(b *testing.B) {
			for b.Loop() {
				for i := range 64 {
					run(b, tokens[i:i+1], depth+i)
				}
			}
			b.ReportMetric(float64(64*b.N)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}
