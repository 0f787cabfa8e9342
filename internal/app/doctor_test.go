package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/inference/gguf"
	"ragd/internal/config"
)

// Doctor opens what a start would open, and nothing else.
func TestDoctorLooksAtModels(t *testing.T) {
	dir := t.TempDir()
	put := func(path string, data []byte) string {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var whole bytes.Buffer
	if err := gguf.NewWriter(&whole).Finish(); err != nil {
		t.Fatal(err)
	}
	good := put("good.gguf", whole.Bytes())
	cut := put("cut.gguf", whole.Bytes()[:10])
	put("models/hf/a/b/main/c.gguf", whole.Bytes())
	absent := filepath.Join(dir, "absent.gguf")
	remote := config.Remote{URL: "http://gpu:8000/v1", Model: "big"}
	counted := remote
	counted.Tokenizer = "smollm2-135m-instruct"
	for name, c := range map[string]struct {
		answer string
		remote config.Remote
		role   string
		want   string // of the problem; empty for none
	}{
		"a file":              {answer: good, role: "answer model"},
		"a file cut short":    {answer: cut, role: "answer model", want: cut + ": header: file is cut short"},
		"no file":             {answer: absent, role: "answer model", want: absent},
		"not pulled":          {answer: "smollm2-135m-instruct", role: "answer model", want: "ragd pull smollm2-135m-instruct"},
		"pulled":              {answer: "hf:a/b/c.gguf", role: "answer model"},
		"pulled, by revision": {answer: "hf:a/b/c.gguf@main", role: "answer model"},
		"another revision":    {answer: "hf:a/b/c.gguf@v2", role: "answer model", want: "ragd pull hf:a/b/c.gguf@v2"},
		"on another server":   {answer: absent, remote: remote, role: "answer model"},
		"its tokenizer":       {answer: absent, remote: counted, role: "tokenizer", want: "ragd pull smollm2-135m-instruct"},
	} {
		cfg := config.Default()
		cfg.Models.Answer, cfg.Models.Embedding, cfg.Inference.Remote = c.answer, good, c.remote
		got := checkOf(t, checkModels(cfg, dir), c.role)
		if c.want == "" && (got.Problem != "" || got.Found == "") || !strings.Contains(got.Problem, c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
