package model_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"ragd/inference/cpu"
	"ragd/inference/model"
	"ragd/inference/quant"
	"ragd/internal/testenv"
)

// BenchmarkSmolLM2Caches is the time of steps over a q8_0 cache over that of the same
// steps over an f16 one, in turn: the median and the range of the ratios of all pairs.
// CPU time is that of all threads, which other processes disturb less. -benchtime 9x.
func BenchmarkSmolLM2Caches(b *testing.B) {
	const deepest = 4096
	path := testenv.Model(b, smolLM2)
	half := loadFile(b, path, cpu.Config{Threads: 1}, deepest+512)
	bytes := loadFile(b, path, cpu.Config{Threads: 1, CacheType: quant.Q8_0}, deepest+512)
	blocks := table(half, deepest+512)
	tokens := make([]int32, 512)
	for i := range tokens {
		tokens[i] = int32(i*7919%48000 + 100)
	}
	for at := 0; at < deepest; at += len(tokens) {
		timed(b, half, tokens, at, blocks, 1)
		timed(b, bytes, tokens, at, blocks, 1)
	}
	for _, depth := range []int{0, 512, 2048, deepest} {
		for _, rows := range []int{1, 4, 512} {
			b.Run(fmt.Sprintf("rows=%d/depth=%d", rows, depth), func(b *testing.B) {
				var wall, spent []float64
				steps := max(1, 64/rows)
				for b.Loop() {
					w, c := timed(b, half, tokens[:rows], depth, blocks, steps)
					w8, c8 := timed(b, bytes, tokens[:rows], depth, blocks, steps)
					wall, spent = append(wall, w8/w), append(spent, c8/c)
				}
				slices.Sort(wall)
				slices.Sort(spent)
				n := len(wall)
				b.ReportMetric(wall[n/2], "wall")
				b.ReportMetric(spent[n/2], "cpu")
				b.ReportMetric(spent[0], "cpu-min")
				b.ReportMetric(spent[n-1], "cpu-max")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// timed is the wall and CPU time of some steps.
func timed(b *testing.B, m *model.Llama, tokens []int32, start int, blocks []int32, steps int) (wall, spent float64) {
	b.Helper()
	began, used := time.Now(), cpuTime(b)
	for range steps {
		if _, err := m.Forward(model.Batch{{Tokens: tokens, Start: start, Blocks: blocks, Logits: 1}}); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began).Seconds(), cpuTime(b) - used
}

// cpuTime is what the process has used so far, in seconds.
func cpuTime(b *testing.B) float64 {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}
