package engine_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
	"ragd/inference/sample"
)

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name      string
		says      string
		maxTokens int
		stop      []string
		ignoreEOS bool
		want      string
		reason    engine.Reason
		tokens    int
	}{
		{"to its own end", "hello", 100, nil, false, "hello", engine.ReasonStop, 6},
		{"an empty answer", "", 100, nil, false, "", engine.ReasonStop, 1},
		{"to the limit", "hello", 3, nil, false, "hel", engine.ReasonLength, 3},
		{"one token", "hello", 1, nil, false, "h", engine.ReasonLength, 1},
		{"past its end", "hi", 5, nil, true, "hi", engine.ReasonLength, 5},
		{"stop text over several tokens", "one two three", 100, []string{"two"}, false, "one ", engine.ReasonStopString, 7},
		{"what only looked like a stop text", "one tw", 100, []string{"two"}, false, "one tw", engine.ReasonStop, 7},
		{"held back at the limit", "one two", 6, []string{"two"}, false, "one tw", engine.ReasonLength, 6},
		{"the first of two stop texts", "abcdef", 100, []string{"ef", "cd"}, false, "ab", engine.ReasonStopString, 4},
		{"characters of several bytes", "값은 3°C 🙂", 100, nil, false, "값은 3°C 🙂", engine.ReasonStop, 17},
		{"a character cut by the limit", "a값", 3, nil, false, "a", engine.ReasonLength, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request("question", c.maxTokens)
			r.Stop, r.IgnoreEOS = c.stop, c.ignoreEOS
			dec := enginetest.NewDecoder(16, 256)
			dec.Next = enginetest.Reciter(len(r.Tokens), c.says)
			inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
				a := run(t, e, r)
				if a.text != c.want || a.done.Reason != c.reason {
					t.Errorf("%q (%s), want %q (%s)", a.text, a.done.Reason, c.want, c.reason)
				}
				u := a.done.Usage
				if u.InputTokens != len(r.Tokens) || u.OutputTokens != c.tokens || len(a.tokens) != c.tokens {
					t.Errorf("usage %+v with %d ids, want %d and %d tokens", u, len(a.tokens), len(r.Tokens), c.tokens)
				}
			})
		})
	}
}

func TestDeltasAreWholeCharacters(t *testing.T) {
	r := request("q", 100)
	const text = "한국어와 English, 그리고 🙂"
	dec := enginetest.NewDecoder(16, 256)
	dec.Next, dec.Before = enginetest.Reciter(1, text), slowly
	inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
		a := run(t, e, r)
		// One delta a character, and one for the token that ended the answer.
		if want := len([]rune(text)) + 1; a.text != text || a.deltas != want {
			t.Errorf("%q in %d deltas, want %q in %d", a.text, a.deltas, text, want)
		}
	})
}

func TestSlowReaderGetsJoinedDeltas(t *testing.T) {
	dec := enginetest.NewDecoder(64, 256)
	dec.Before = slowly
	inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
		slow := submit(t, e, request("slow reader", 50))
		quick := run(t, e, request("quick reader", 50))
		if quick.deltas != 50 {
			t.Errorf("the quick reader got %d deltas, want 50", quick.deltas)
		}
		a := readAll(t, slow)
		if a.deltas != 1 || len(a.tokens) != 50 {
			t.Errorf("the slow reader got %d tokens in %d deltas, want 50 in 1", len(a.tokens), a.deltas)
		}
	})
}

func TestTimes(t *testing.T) {
	dec := enginetest.NewDecoder(64, 1024)
	dec.Before = slowly
	cfg := engine.Config{MaxRunning: 1, StepTokens: 20, PieceTokens: 20}
	inBubble(t, cfg, dec, func(t *testing.T, e *engine.Engine) {
		first := submit(t, e, request(strings.Repeat("a", 50), 5))
		second := submit(t, e, request("b", 1))
		a, b := readAll(t, first).done.Times, readAll(t, second).done.Times
		for _, c := range []struct {
			name      string
			got, want time.Duration
		}{
			{"first: queue", a.Queue(), 0},
			{"first: three pieces", a.Prefill(), 3 * stepTime},
			{"first: four more tokens", a.Decode(), 4 * stepTime},
			{"second: waits for all of it", b.Queue(), 7 * stepTime},
			{"second: prefill", b.Prefill(), stepTime},
			{"second: a single token", b.Decode(), 0},
		} {
			if c.got != c.want {
				t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
			}
		}
	})
}

func TestConfidence(t *testing.T) {
	r := request("question", 3)
	r.Confidence = true
	dec := enginetest.NewDecoder(16, 256)
	dec.Next = enginetest.Reciter(len(r.Tokens), "abc")
	inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
		got := run(t, e, r).done.Confidence
		// A logit of 10 among 257 of 0.
		want := 10 - math.Log(math.Exp(10)+257)
		if math.Abs(got.Mean-want) > 1e-6 || math.Abs(got.Min-want) > 1e-6 {
			t.Errorf("confidence %+v, want %v", got, want)
		}
	})
}

// The caches change the work, never the answer.
func TestSameAnswerWithAndWithoutCaches(t *testing.T) {
	long := strings.Repeat("The same beginning of every prompt. ", 5)
	ask := func(t *testing.T, cfg engine.Config) (texts []string, cached []int) {
		inBubble(t, cfg, enginetest.NewDecoder(128, 1024), func(t *testing.T, e *engine.Engine) {
			for _, q := range []string{long + "One?", long + "Two?", long + "One?"} {
				a := run(t, e, request(q, 40))
				texts = append(texts, a.text)
				cached = append(cached, a.done.Usage.CachedTokens)
				if a.scheduled.CachedTokens != a.done.Usage.CachedTokens {
					t.Errorf("scheduled with %d cached tokens, done with %d", a.scheduled.CachedTokens, a.done.Usage.CachedTokens)
				}
			}
		})
		return texts, cached
	}
	plain, cached := ask(t, engine.Config{})
	if want := []int{0, 176, 176}; !slices.Equal(cached, want) {
		t.Errorf("cached tokens %v, want %v", cached, want)
	}
	for name, cfg := range map[string]engine.Config{
		"no prefix cache": {NoPrefixCache: true},
		"no KV cache":     {NoKVCache: true},
		"small pieces":    {PieceTokens: 7, StepTokens: 9},
	} {
		texts, cached := ask(t, cfg)
		if !slices.Equal(texts, plain) {
			t.Errorf("%s: %q, want %q", name, texts, plain)
		}
		if (cfg.NoKVCache || cfg.NoPrefixCache) && slices.Max(cached) != 0 {
			t.Errorf("%s: took over %v tokens", name, cached)
		}
	}
}

func TestNoKVCacheRunsEverythingAgain(t *testing.T) {
	dec := enginetest.NewDecoder(64, 256)
	var rows []int
	dec.Before = func(b model.Batch) error {
		if b[0].Start != 0 {
			t.Errorf("a piece begins at %d", b[0].Start)
		}
		rows = append(rows, b.Tokens())
		return nil
	}
	inBubble(t, engine.Config{NoKVCache: true}, dec, func(t *testing.T, e *engine.Engine) {
		run(t, e, request("0123456789", 4))
	})
	if want := []int{10, 11, 12, 13}; !slices.Equal(rows, want) {
		t.Errorf("steps of %v tokens, want %v", rows, want)
	}
}

func TestPenaltyCountsTheAnswer(t *testing.T) {
	inBubble(t, engine.Config{}, enginetest.NewDecoder(16, 256), func(t *testing.T, e *engine.Engine) {
		r := request("question", 20)
		r.Sampling.RepetitionPenalty = sample.MaxRepetitionPenalty
		drawn := make(map[int32]bool)
		for _, id := range run(t, e, r).tokens {
			if drawn[id] {
				t.Errorf("token %d was drawn twice under the largest penalty", id)
			}
			drawn[id] = true
		}
	})
}

func TestTenantsShareNoPrefix(t *testing.T) {
	text := strings.Repeat("a shared secret ", 10)
	inBubble(t, engine.Config{}, enginetest.NewDecoder(64, 1024), func(t *testing.T, e *engine.Engine) {
		for _, c := range []struct {
			tenant string
			want   int
		}{{"a", 0}, {"b", 0}, {"a", 144}, {"b", 144}} {
			r := request(text, 4)
			r.Tenant = c.tenant
			if got := run(t, e, r).done.Usage.CachedTokens; got != c.want {
				t.Errorf("tenant %s: %d tokens taken over, want %d", c.tenant, got, c.want)
			}
		}
	})
}

// A seed gives the same text alone and in company.
func TestSameSeedInCompany(t *testing.T) {
	r := request("what will it be this time?", 60)
	r.Sampling = sample.Params{Temperature: 1, Seed: 7}
	var alone, other string
	inBubble(t, engine.Config{}, enginetest.NewDecoder(64, 256), func(t *testing.T, e *engine.Engine) {
		alone = run(t, e, r).text
		r := r
		r.Sampling.Seed = 8
		other = run(t, e, r).text
	})
	if alone == other {
		t.Fatalf("two seeds gave the same text %q", alone)
	}
	inBubble(t, engine.Config{PieceTokens: 5, StepTokens: 16}, enginetest.NewDecoder(256, 256), func(t *testing.T, e *engine.Engine) {
		var others []*engine.Stream
		for i := range 7 {
			o := request(fmt.Sprintf("request %d is another one%s", i, strings.Repeat("!", 9*i)), 30+i)
			o.Sampling = sample.Params{Temperature: 1, Seed: r.Sampling.Seed}
			others = append(others, submit(t, e, o))
			synctest.Wait()
		}
		if got := run(t, e, r).text; got != alone {
			t.Errorf("in company %q, alone %q", got, alone)
		}
		for _, s := range others {
			readAll(t, s)
		}
	})
}
