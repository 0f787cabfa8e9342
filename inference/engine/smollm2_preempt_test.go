package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/engine"
	"ragd/inference/quant"
	"ragd/inference/sample"
)

// On the real model, answers that pause for lack of cache blocks and read again what was
// evicted are word for word those of an undisturbed run: greedy, sampled, penalised and
// JSON, with and without drafts, whatever keys and values are kept as.
func TestSmolLM2SameTextWhenPreempted(t *testing.T) {
	for _, cache := range []quant.Type{quant.F16, quant.Q8_0} {
		t.Run(cache.String(), func(t *testing.T) {
			host := cpu.Config{CacheType: cache}
			large, tok := smolLM2On(t, host, engine.Config{})
			vocabulary := sample.NewVocabulary(tok.Size(), tok.Piece, tok.Special().EndOfGeneration)
			requests := func(off bool) (out []engine.Request) {
				for i, p := range []sample.Params{
					{},
					{Temperature: .8, TopP: .95, Seed: 7},
					{RepetitionPenalty: 1.2},
					{Temperature: .5, Seed: 8, Grammar: sample.NewJSON(vocabulary, tok.Piece)},
					{},
				} {
					question := fmt.Sprintf("%sQuestion %d: what is known of the lighthouse? Repeat the text.", evidence, i)
					out = append(out, engine.Request{Tokens: chat(tok, question), MaxTokens: 90, Sampling: p, NoLookup: off, IgnoreEOS: p.Grammar == nil, Stop: []string{"never"}})
				}
				return out
			}
			var want []answer
			for _, r := range requests(true) {
				want = append(want, run(t, large, r))
			}
			for _, off := range []bool{true, false} {
				small, _ := smolLM2Cache(t, 20, host, engine.Config{})
				run(t, small, engine.Request{Tokens: chat(tok, "Hello."), MaxTokens: 1})
				var streams []*engine.Stream
				for _, r := range requests(off) {
					streams = append(streams, submit(t, small, r))
				}
				for i, s := range streams {
					got := readAll(t, s)
					if !slices.Equal(got.tokens, want[i].tokens) || got.text != want[i].text || got.done.Reason != want[i].done.Reason {
						t.Errorf("answer %d, lookup %v, preempted %d times: %q, undisturbed %q", i, !off, got.done.Usage.Preemptions, got.text, want[i].text)
					}
				}
				st := small.Stats()
				if st.Preemptions < 2 || st.RecomputedTokens == 0 {
					t.Errorf("lookup %v: %d preemptions, %d tokens run again: too few to tell", !off, st.Preemptions, st.RecomputedTokens)
				}
				t.Logf("lookup %v: %d preemptions, %d of %d tokens run again", !off, st.Preemptions, st.RecomputedTokens, st.InputTokens+st.OutputTokens)
			}
		})
	}
}
