package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/inference/encode/encodetest"
	"ragd/internal/config"
	"ragd/rerank"
)

// TestBrokenReranker: a reranker that is none, or is broken, is found at the start.
func TestBrokenReranker(t *testing.T) {
	cfg := settings(t)
	cfg.Rerank.Scorer = config.ScoreCross
	half := encodetest.Write(t, encodetest.Model{Family: encodetest.BERT})
	if err := os.Truncate(half, 50000); err != nil {
		t.Fatal(err)
	}
	folder := encodetest.Write(t, encodetest.Model{Family: encodetest.XLMRoBERTa, Folder: true})
	if err := os.Remove(filepath.Join(folder, "tokenizer.json")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		half: "has 50000", folder: "vocab.txt", cfg.Models.Embedding: "no classification head", cfg.Models.Answer: "unknown model architecture",
		encodetest.Write(t, encodetest.Model{Family: encodetest.BERT, Labels: 3}): "3 outputs",
		filepath.Join(t.TempDir(), "nowhere.gguf"):                                "no such file",
	} {
		broken := cfg
		broken.Models.Rerank = path
		refuses(t, broken, path, want)
	}
}

// TestRerankers: each scorer answers, search and explanation tell what it did.
func TestRerankers(t *testing.T) {
	base := settings(t)
	for _, c := range []struct {
		scorer string
		model  encodetest.Model
		want   rerank.Report
	}{
		{scorer: config.ScoreNone, want: rerank.Report{Scorer: "none", Candidates: 1}},
		{scorer: config.ScoreLate, want: rerank.Report{Scorer: "late-interaction", Candidates: 1, Scored: 1}},
		{scorer: config.ScoreSentence, want: rerank.Report{Scorer: "best-sentence", Candidates: 1, Scored: 1}},
		{
			scorer: config.ScoreCross, model: encodetest.Model{Family: encodetest.BERT},
			want: rerank.Report{Scorer: "tiny-reranker", Candidates: 1, Scored: 1, Cut: 1},
		},
	} {
		t.Run(c.scorer, func(t *testing.T) {
			cfg := base
			cfg.Rerank.Scorer = c.scorer
			if c.scorer == config.ScoreCross {
				cfg.Models.Rerank = encodetest.Write(t, c.model)
			}
			l := start(t, cfg)
			name := l.notes(t)
			res := l.asked(t, body{"question": "What is the signal code?", "collection": name, "answer_mode": "extract", "explain": true})
			if res.Explain.Rerank != c.want {
				t.Errorf("report %+v, want %+v", res.Explain.Rerank, c.want)
			}
			if !strings.Contains(res.Answer, "moss & heather") {
				t.Errorf("answer %q", res.Answer)
			}
			// A question that fills the cross-encoder is answered in the order of the search.
			long := strings.Repeat("What is the signal code of the pier? ", 20)
			res = l.asked(t, body{"question": long, "collection": name, "answer_mode": "extract", "explain": true})
			want := c.want
			if c.scorer == config.ScoreCross {
				want.Scored, want.Cut, want.Short = 0, 0, rerank.QuestionTooLong
			}
			if res.Explain.Rerank != want {
				t.Errorf("long question: report %+v, want %+v", res.Explain.Rerank, want)
			}
		})
	}
}
