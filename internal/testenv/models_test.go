package testenv

import (
	"path/filepath"
	"testing"

	"ragd/inference/gguf"
	"ragd/inference/safetensors"
)

func TestModels(t *testing.T) {
	for _, c := range []struct {
		name, architecture string
		tensors            int
	}{
		{"smollm2-135m-instruct", "llama", 272},
		{"multilingual-e5-small", "bert", 197},
	} {
		path := Model(t, c.name)
		if again := Model(t, c.name); again != path {
			t.Errorf("%s lies at %s and at %s", c.name, path, again)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Architecture() != c.architecture || len(f.Tensors) != c.tensors {
			t.Errorf("%s: architecture %q, %d tensors", c.name, f.Architecture(), len(f.Tensors))
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	f, err := safetensors.Open(filepath.Join(Model(t, "all-minilm-l6-v2"), "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if w, ok := f.Tensor("embeddings.word_embeddings.weight"); !ok || w.Cols() != 384 || w.Rows() != 30522 {
		t.Errorf("word embeddings are %+v", w)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
