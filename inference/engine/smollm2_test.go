package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ragd/inference/cpu"
	"ragd/inference/engine"
	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/inference/quant"
	"ragd/inference/sample"
	"ragd/inference/tokenizer"
	"ragd/internal/testenv"
)

// smolLM2 starts an engine on the real model with a cache of 4,096 tokens.
func smolLM2(t testing.TB, cfg engine.Config) (*engine.Engine, tokenizer.Tokenizer) {
	t.Helper()
	return smolLM2On(t, cpu.Config{}, cfg)
}

// smolLM2On is smolLM2 on a backend of one's own.
func smolLM2On(t testing.TB, host cpu.Config, cfg engine.Config) (*engine.Engine, tokenizer.Tokenizer) {
	t.Helper()
	return smolLM2Cache(t, 256, host, cfg)
}

// smolLM2Cache is smolLM2On with a cache of so many blocks.
func smolLM2Cache(t testing.TB, blocks int, host cpu.Config, cfg engine.Config) (*engine.Engine, tokenizer.Tokenizer) {
	t.Helper()
	f, err := gguf.Open(testenv.Model(t, "smollm2-135m-instruct"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	ops, err := cpu.New(host)
	if err != nil {
		t.Fatal(err)
	}
	dec, err := model.LoadDecoder(t.Context(), f, ops, model.LoadConfig{Blocks: blocks})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(dec, tok, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e, tok
}

// chat is a question in the model's own template.
func chat(tok tokenizer.Tokenizer, question string) []int32 {
	return tok.EncodeScaffold(nil, "<|im_start|>user\n"+question+"<|im_end|>\n<|im_start|>assistant\n")
}

const evidence = "The lighthouse of Oksan was built in 1911 by the engineer Maria Lindqvist. " +
	"It stands 34 metres above the sea, and its lamp is seen from 21 kilometres. "

func TestSmolLM2Answers(t *testing.T) {
	e, tok := smolLM2(t, engine.Config{})
	r := engine.Request{Tokens: chat(tok, evidence+"In which year was the lighthouse built?"), MaxTokens: 60, Confidence: true}
	a := run(t, e, r)
	if !strings.Contains(a.text, "1911") || a.done.Reason != engine.ReasonStop {
		t.Errorf("%q (%s), want the year 1911 and an end", a.text, a.done.Reason)
	}
	if c := a.done.Confidence; c.Mean < -1.5 || c.Mean > 0 || c.Min > c.Mean || c.Tokens != a.done.Usage.OutputTokens {
		t.Errorf("confidence %+v of %d tokens", c, a.done.Usage.OutputTokens)
	}
	t.Logf("%q %+v", a.text, a.done)

	r.Stop = []string{"1911"}
	if got := run(t, e, r); got.done.Reason != engine.ReasonStopString || strings.Contains(got.text, "19") {
		t.Errorf("%q (%s), want it to end before the year", got.text, got.done.Reason)
	}
}

// On the real model too, neither caches nor pieces nor company change a text, whatever
// keys and values are kept as.
func TestSmolLM2SameTextInCompany(t *testing.T) {
	for _, cache := range []quant.Type{quant.F16, quant.Q8_0} {
		t.Run(cache.String(), func(t *testing.T) { sameTextInCompany(t, cpu.Config{CacheType: cache}) })
	}
}

func sameTextInCompany(t *testing.T, host cpu.Config) {
	drawn := sample.Params{Temperature: 0.8, TopP: 0.95, Seed: 11}
	question := strings.Repeat(evidence, 4) + "Describe the lighthouse."
	ask := func(t *testing.T, e *engine.Engine, tok tokenizer.Tokenizer, n int) answer {
		return run(t, e, engine.Request{Tokens: chat(tok, question), MaxTokens: n, Sampling: drawn, IgnoreEOS: true})
	}

	e, tok := smolLM2On(t, host, engine.Config{})
	alone := ask(t, e, tok, 32)
	if cached := ask(t, e, tok, 32); !slices.Equal(cached.tokens, alone.tokens) || cached.done.Usage.CachedTokens == 0 {
		t.Errorf("with %d tokens from the cache %q, without %q", cached.done.Usage.CachedTokens, cached.text, alone.text)
	}
	var others []*engine.Stream
	for i := range 7 {
		q := fmt.Sprintf("%sQuestion %d: how high is it?", evidence[:20*i], i)
		others = append(others, submit(t, e, engine.Request{Tokens: chat(tok, q), MaxTokens: 10 + 3*i, Sampling: drawn}))
	}
	if got := ask(t, e, tok, 32); !slices.Equal(got.tokens, alone.tokens) {
		t.Errorf("in company %q, alone %q", got.text, alone.text)
	}
	for _, s := range others {
		readAll(t, s)
	}

	small, tok := smolLM2On(t, host, engine.Config{PieceTokens: 19, NoPrefixCache: true})
	if got := ask(t, small, tok, 32); !slices.Equal(got.tokens, alone.tokens) {
		t.Errorf("in small pieces %q, in large ones %q", got.text, alone.text)
	}
	none, tok := smolLM2On(t, host, engine.Config{NoKVCache: true})
	if got := ask(t, none, tok, 4); !slices.Equal(got.tokens, alone.tokens[:4]) {
		t.Errorf("without KV cache %q, with it %q", got.text, alone.text)
	}
}

// Prompt lookup drafts a good part of an answer that quotes, in company and from a
// warm prefix too, and the text is what it is without: greedy and sampled.
func TestSmolLM2SameTextWithLookup(t *testing.T) {
	e, tok := smolLM2(t, engine.Config{})
	quoting := chat(tok, "Repeat this text word for word: "+evidence+evidence)
	for _, drawn := range []sample.Params{{}, {Temperature: 0.5, Seed: 3}} {
		r := engine.Request{Tokens: quoting, MaxTokens: 70, Sampling: drawn, NoLookup: true}
		plain := run(t, e, r)
		r.NoLookup = false
		warm := run(t, e, r)
		r.Tenant = "another" // whose prefix is cold
		other := submit(t, e, engine.Request{Tokens: chat(tok, "Count to ten."), MaxTokens: 40})
		company := run(t, e, r)
		readAll(t, other)
		for name, got := range map[string]answer{"warm": warm, "in company": company} {
			if !slices.Equal(got.tokens, plain.tokens) || got.done.Reason != plain.done.Reason {
				t.Errorf("%s, temperature %v: %q with lookup, %q without", name, drawn.Temperature, got.text, plain.text)
			}
		}
		u := warm.done.Usage
		if u.AcceptedTokens < u.OutputTokens/3 {
			t.Errorf("temperature %v: %+v, want a third of the answer drafted", drawn.Temperature, u)
		}
		t.Logf("%v with lookup, %v without, %+v", warm.done.Times.Decode(), plain.done.Times.Decode(), u)
	}
}

// A caller who leaves in the middle of a long prefill of the real model frees
// everything when the step that is underway ends: the engine looks between any two
// steps, so at most one ends after Close has returned.
func TestSmolLM2CancelInPrefill(t *testing.T) {
	e, tok := smolLM2(t, engine.Config{PieceTokens: 32})
	s := submit(t, e, engine.Request{Tokens: chat(tok, strings.Repeat(evidence, 30)), MaxTokens: 50})
	for {
		event, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := event.(engine.Scheduled); ok {
			break
		}
	}
	s.Close()
	before, left := e.Stats().Steps, time.Now()
	a := readAll(t, s)
	st := e.Stats()
	if a.done.Reason != engine.ReasonCancelled || !a.done.Times.FirstToken.IsZero() || st.BlocksUsed != 0 {
		t.Errorf("%+v, %d blocks used; want cancelled before the first token and none", a.done, st.BlocksUsed)
	}
	if st.Steps-before > 1 {
		t.Errorf("%d more steps after the caller left, want the one underway at the most", st.Steps-before)
	}
	t.Logf("ended %v after the caller left", time.Since(left))
}
