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

// What a loaded model takes when its cache is full is what its configuration says,
// which is what the log and `ragd kv` say: weights, and keys and values of each
// position, within a twentieth.
func TestMemoryIsWhatIsSaid(t *testing.T) {
	const positions, piece = 4096, 64
	path := testenv.Model(t, smolLM2)
	before := residentBytes(t)
	m := loadFile(t, path, cpu.Config{}, positions)
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
	weights := m.Config().Weights
	said := weights + int64(m.Config().KVBytesPerToken(2)*positions)
	t.Logf("loaded: %d bytes for %d of weights; with a full cache: %d for %d", loaded, weights, used, said)
	if got := float64(used) / float64(said); math.Abs(got-1) > 0.05 {
		t.Errorf("weights and cache take %.3f times what is said", got)
	}
}
