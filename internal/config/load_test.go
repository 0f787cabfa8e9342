package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLoadOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ragd.yaml")
	text := "server:\n  addr: 127.0.0.1:1\n  request_timeout: 5s\nretrieve:\n  top_k: 7\nprompt:\n  max_chunks: 3\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path,
		[]string{"RAGD_RETRIEVE_TOP_K=8", "RAGD_SERVER_ADDR=127.0.0.1:2", "RAGD_CUDA_DRIVER=elsewhere"},
		map[string]any{"server.addr": "127.0.0.1:3"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Server.Addr != "127.0.0.1:3" || c.Retrieve.TopK != 8 || c.Prompt.MaxChunks != 3 || c.Server.RequestTimeout != 5*time.Second {
		t.Errorf("flags > environment > file > defaults does not hold: %+v", c)
	}
	if c.Prompt.AnswerTokens != Default().Prompt.AnswerTokens {
		t.Errorf("answer_tokens = %d, want the default", c.Prompt.AnswerTokens)
	}
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":  {"serverr:\n  addr: x\n", "serverr"},
		"unknown leaf": {"server:\n  adr: x\n", "adr"},
		"bound":        {"retrieve:\n  top_k: 0\n", "retrieve.top_k"},
		"fraction":     {"retrieve:\n  top_k: 1.5\n", "retrieve.top_k"},
		"overlap":      {"ingest:\n  overlap_tokens: 256\n", "ingest.overlap_tokens"},
		"choice":       {"ingest:\n  sentences: some\n", "ingest.sentences"},
		"scorer":       {"rerank:\n  scorer: some\n", "rerank.scorer"},
		"no reranker":  {"rerank:\n  scorer: cross\n", "models.rerank"},
		"no time":      {"rerank:\n  timeout: 0s\n", "rerank.timeout"},
		"not yaml":     {":\n\t-", "config"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path, nil, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not name %q", err, c.want)
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml"), nil, nil); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("error %v does not name the file", err)
	}
}

func TestFieldErrorIsTyped(t *testing.T) {
	c := Default()
	c.Inference.MaxQueue = 0
	var fe *FieldError
	if err := c.Validate(); !errors.As(err, &fe) || fe.Field != "inference.max_queue" {
		t.Errorf("got %v", err)
	}
}
