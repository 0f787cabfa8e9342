package encode_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/cpu/kernel"
	"ragd/inference/encode"
)

// What rounding activations to eight bits costs, over all prose of the example
// corpus in both languages, for every kernel set that is assembly. The float32 path is
// held to an independent forward pass by TestAgainstReference. Without the finer
// rows of package cpu the least cosine here is 0.999896.
func TestRoundingIsBarelySeen(t *testing.T) {
	const least = 0.99993
	texts := paragraphs(t, "../../examples/corpus/*.md")
	vectors := func(cfg cpu.Config) []encode.Embedding {
		out, err := open(t, "multilingual-e5-small", cfg, encode.Config{}).EmbedPassages(context.Background(), texts)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := vectors(cpu.Config{Float32: true})
	sets := kernel.Sets()
	if len(sets) > 1 {
		sets = sets[1:] // portable Go takes minutes; its products are those of the others
	}
	for _, set := range sets {
		worst, sum := 1.0, 0.0
		for i, v := range vectors(cpu.Config{Kernels: set}) {
			cos := cosine(v.Vector, want[i].Vector)
			worst, sum = min(worst, cos), sum+cos
			if cos < least {
				t.Errorf("%s: cosine %.6f: %.60q", set.Name, cos, texts[i])
			}
		}
		t.Logf("%s: %d passages, cosine %.6f, the least %.6f", set.Name, len(texts), sum/float64(len(texts)), worst)
	}
}

// paragraphs are the texts between blank lines of Markdown files.
func paragraphs(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) < 12 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	var out []string
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for p := range strings.SplitSeq(string(data), "\n\n") {
			if p = strings.TrimSpace(p); len(p) > 40 {
				out = append(out, p)
			}
		}
	}
	return out
}
