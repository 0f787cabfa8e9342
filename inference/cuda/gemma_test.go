//go:build cuda && cgo && gemma

package cuda

import (
	"testing"

	"ragd/inference/gguf"
	"ragd/inference/tokenizer"
	"ragd/internal/testenv"
)

// Gemma 3 270M on the device: head norms, norms after the layers, sliding windows and
// a vocabulary of 262,144 on real weights. Its file is fetched only by
// `make test-gemma-cuda`, as Gemma's licence has terms that a user must agree to.
func TestGemmaContinuesAsTheCPU(t *testing.T) {
	const name = "gemma-3-270m"
	f, err := gguf.Open(testenv.Model(t, name))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	var prompts [][]int32
	for _, text := range []string{
		"The library opens at nine. On Sundays it opens at",
		"대한민국의 수도는",
	} {
		prompts = append(prompts, tok.Encode([]int32{tok.Special().BOS}, text))
	}
	continuesAsTheCPU(t, name, prompts, 8, split{0, "8.0"}, split{9, "7.0"})
}
