package model_test

import (
	"bytes"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/model"
	"ragd/inference/quant"
	"ragd/internal/testenv"
)

// residentBytes is the memory of the process that is in RAM (VmRSS), without
// garbage.
func residentBytes(t testing.TB) int64 {
	t.Helper()
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(string(bytes.Fields(statm)[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// What a loaded model takes is what its configuration says, which is what the log and
// `ragd kv` say: weights, and keys and values of each position, within a twentieth. It
// takes it from the start, and no more once its cache is full.
func TestMemoryIsWhatIsSaid(t *testing.T) {
	for _, c := range []struct {
		cache quant.Type
		elem  float64
	}{{quant.F16, 2}, {quant.Q8_0, 34.0 / 32}} {
		t.Run(c.cache.String(), func(t *testing.T) { checkMemory(t, c.cache, c.elem) })
	}
}

func checkMemory(t *testing.T, cache quant.Type, elem float64) {
	const positions, piece = 8192, 64
	path := testenv.Model(t, smolLM2)
	before := residentBytes(t)
	m := loadFile(t, path, cpu.Config{CacheType: cache}, positions)
	loaded := residentBytes(t) - before
	tokens := make([]int32, piece)
	for i := range tokens {
		tokens[i] = int32(1000 + i)
	}
	for at := 0; at < positions; at += piece {
		blocks := table(m, positions)[at/model.BlockTokens:][:piece/model.BlockTokens]
		if _, err := m.Forward(model.Batch{{Tokens: tokens, Blocks: blocks}}); err != nil {
			t.Fatal(err)
		}
	}
	used := residentBytes(t) - before
	said := m.Config().Weights + int64(m.Config().KVBytesPerToken(elem)*positions)
	t.Logf("%d bytes are said; loaded: %d; with a full cache: %d", said, loaded, used)
	for _, got := range []int64{loaded, used} {
		if ratio := float64(got) / float64(said); math.Abs(ratio-1) > 0.05 {
			t.Errorf("weights and cache take %.3f times what is said", ratio)
		}
	}
}
