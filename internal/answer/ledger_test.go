package answer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ragd/retrieve"
)

// For random candidates, budgets and histories: the engine is given exactly what
// the ledger says, nothing exceeds the window, and every candidate is either
// presented or dropped with one reason.
func TestLedgerProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		hits := rapid.SliceOfN(rapid.Custom(drawHit), 0, 12).Draw(rt, "hits")
		for i := range hits {
			hits[i].Chunk.ID = int64(i + 1)
		}
		gen := &fakeGenerator{info: ModelInfo{
			Name: "fake", Window: rapid.IntRange(64, 3000).Draw(rt, "window"), Small: rapid.Bool().Draw(rt, "small"),
		}, pieces: []string{"ok"}}
		r := newRig(t, hits, gen)
		req := drawRequest(rt, gen.info.Window)
		res, err := r.Ask(context.Background(), time.Now(), req, &recordingSink{})
		checkSum(t, res)
		var e *Error
		if errors.As(err, &e) && e.Code == OverBudget {
			if gen.got.Tokens != nil {
				rt.Fatal("refused after the engine was asked")
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		checkLedger(rt, res, gen, hits)
	})
}

func drawHit(t *rapid.T) retrieve.Hit {
	h := chunk(0, rapid.StringMatching(`[A-Z][a-z]{0,12}`).Draw(t, "title"),
		rapid.SliceOfN(rapid.SampledFrom([]string{
			"Short.", "A sentence of some length about cranes.", "항구의 기중기는 14톤을 든다.",
			"```", "<|end|> is plain text here.", strings.Repeat("very long ", 30),
		}), 1, 6).Draw(t, "sentences")...)
	h.Scores.Dense = rapid.Float32Range(0.5, 1).Draw(t, "cosine")
	return h
}

func drawRequest(t *rapid.T, window int) Request {
	optional := func(name string, least, most int) *int {
		if rapid.Bool().Draw(t, name+" set") {
			n := rapid.IntRange(least, most).Draw(t, name)
			return &n
		}
		return nil
	}
	req := Request{
		Question:  "What? " + rapid.StringN(0, 60, 200).Draw(t, "question"),
		MaxChunks: optional("max_chunks", 1, 8), AnswerMode: rapid.SampledFrom([]string{"", ModeGenerate, ModeExtract}).Draw(t, "mode"),
		Budget: &Budget{
			ContextTokens: optional("context", 1, window), AnswerTokens: optional("answer", 1, window),
			TTFTMS: optional("ttft", 1, 2000), Detail: rapid.SampledFrom([]Detail{DetailAuto, DetailChunks, DetailSentences}).Draw(t, "detail"),
		},
	}
	req.Question = strings.ReplaceAll(req.Question, "\x00", "")
	for i := range rapid.IntRange(0, 5).Draw(t, "turns") {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		req.History = append(req.History, Turn{role, strings.Repeat("earlier ", rapid.IntRange(0, 40).Draw(t, "length"))})
	}
	return req
}

func checkLedger(t *rapid.T, res *Result, gen *fakeGenerator, hits []retrieve.Hit) {
	l := res.Usage.Ledger
	if n := len(gen.got.Tokens); n != res.Usage.InputTokens || n != l.Input() {
		t.Fatalf("the engine was given %d tokens, usage says %d, the ledger %d", n, res.Usage.InputTokens, l.Input())
	}
	if gen.got.Tokens != nil && len(gen.got.Tokens)+gen.got.MaxTokens > gen.info.Window {
		t.Fatalf("%d + %d tokens exceed the window of %d", len(gen.got.Tokens), gen.got.MaxTokens, gen.info.Window)
	}
	seen := map[int64]int{}
	for _, e := range l.Evidence {
		seen[e.ChunkID]++
	}
	for _, d := range l.Dropped {
		seen[d.ChunkID]++
		if d.Reason == "" {
			t.Fatalf("chunk %d was dropped without a reason", d.ChunkID)
		}
	}
	for _, h := range hits {
		if seen[h.Chunk.ID] != 1 {
			t.Fatalf("chunk %d stands %d times in the ledger: %+v", h.Chunk.ID, seen[h.Chunk.ID], l)
		}
	}
	if len(res.Sources.Presented) != len(l.Evidence) || res.UsedChunks != len(l.Evidence) {
		t.Fatalf("%d presented, %d in the ledger", len(res.Sources.Presented), len(l.Evidence))
	}
}
