package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/internal/config"
	"ragd/internal/testenv"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// replaced returns data with the first old text after a mark changed; both texts
// are of one length, so that the file's structure stays.
func replaced(t *testing.T, data []byte, mark, old, changed string) []byte {
	t.Helper()
	at := bytes.Index(data, []byte(mark))
	if at < 0 || len(old) != len(changed) {
		t.Fatalf("%q is not in the model", mark)
	}
	from := at + bytes.Index(data[at:], []byte(old))
	out := bytes.Clone(data)
	copy(out[from:], changed)
	return out
}

// TestBrokenModels: a model file that cannot be used is refused at the start,
// with its name and what is wrong.
func TestBrokenModels(t *testing.T) {
	good, err := os.ReadFile(testenv.Model(t, config.Default().Models.Answer))
	if err != nil {
		t.Fatal(err)
	}
	embedding, err := os.ReadFile(testenv.Model(t, config.Default().Models.Embedding))
	if err != nil {
		t.Fatal(err)
	}
	cfg := settings(t)
	dir := t.TempDir()
	for _, c := range []struct {
		name, setting string
		data          []byte
		want          string
	}{
		{"ten-bytes", "answer", good[:10], "needs"},
		{"empty", "answer", nil, "needs"},
		{"in-metadata", "answer", good[:1024], "needs"},
		{"half", "answer", good[:len(good)/2], "needs"},
		{"one-byte-short", "answer", good[:len(good)-1], "needs"},
		{"web-page", "answer", []byte("<!doctype html><p>Sign in first</p>"), "not a GGUF file"},
		{"unknown-family", "answer", replaced(t, good, "general.architecture", "llama", "lemma"), "lemma"},
		{"no-template", "answer", replaced(t, good, "tokenizer.chat_template", "tokenizer.chat_template", "tokenizer.chat_templatX"), "no chat template"},
		{"an-encoder", "answer", embedding, "chat template"},
		{"half-embedder", "embedding", embedding[:len(embedding)/2], "needs"},
		{"a-decoder", "embedding", good, "llama"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, c.name+".gguf")
			if err := os.WriteFile(path, c.data, 0o644); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(path)
			broken := cfg
			if c.setting == "answer" {
				broken.Models.Answer = path
			} else {
				broken.Models.Embedding = path
			}
			refuses(t, broken, path, c.want)
		})
	}
	missing := cfg
	missing.Models.Answer = filepath.Join(dir, "nowhere.gguf")
	refuses(t, missing, missing.Models.Answer, "no such file")
	missing.Models.Answer = "no-such-model"
	refuses(t, missing, "no-such-model", "unknown model")
}

func refuses(t *testing.T, cfg config.Config, name, want string) {
	t.Helper()
	a, err := Open(t.Context(), cfg, Options{Log: discard()})
	if err == nil {
		t.Fatalf("opened, %v", a.Close())
	}
	if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not name %s or say %q", err, name, want)
	}
}

// TestModelFilesMayVanish: a running service does not need its files any more.
func TestModelFilesMayVanish(t *testing.T) {
	cfg := settings(t)
	for _, path := range []*string{&cfg.Models.Answer, &cfg.Models.Embedding} {
		data, err := os.ReadFile(*path)
		if err != nil {
			t.Fatal(err)
		}
		*path = filepath.Join(t.TempDir(), filepath.Base(*path))
		if err := os.WriteFile(*path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l := start(t, cfg)
	c := l.notes(t)
	for _, path := range []string{cfg.Models.Answer, cfg.Models.Embedding} {
		if err := os.Truncate(path, 100); err != nil {
			t.Fatal(err)
		}
	}
	res := l.asked(t, body{"question": "Which lamp is violet?", "collection": c, "budget": body{"answer_tokens": 8}})
	if !strings.Contains(res.Answer, "lamp") || res.Usage.OutputTokens < 1 {
		t.Errorf("%+v", res)
	}
	if strings.Contains(res.Model, "/") || strings.HasSuffix(res.Model, ".gguf") {
		t.Errorf("the body shows where the model lies: %q", res.Model)
	}
}
