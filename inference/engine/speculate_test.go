package engine_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
	"ragd/inference/sample"
)

// An answer that quotes its prompt takes far fewer steps, and ends where it would.
func TestLookupQuotes(t *testing.T) {
	const quote = "The lamp of the lighthouse is seen from twenty-one kilometres away."
	r := request(quote+" Quote: The lamp", 200)
	for _, stop := range [][]string{nil, {"one kilo"}} {
		r.Stop = stop
		dec := enginetest.NewDecoder(64, 1024)
		dec.Next = enginetest.Reciter(len(r.Tokens), strings.TrimPrefix(quote, "The lamp"))
		inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
			with := run(t, e, r)
			steps := e.Stats().Steps
			plain := r
			plain.NoLookup = true
			without := run(t, e, plain)
			if with.text != without.text || !slices.Equal(with.tokens, without.tokens) || with.done.Reason != without.done.Reason {
				t.Errorf("%q (%s), without lookup %q (%s)", with.text, with.done.Reason, without.text, without.done.Reason)
			}
			if n := e.Stats().Steps - steps; steps > n/2 {
				t.Errorf("%d steps with lookup, %d without", steps, n)
			}
			u := with.done.Usage
			if u.AcceptedTokens == 0 || u.AcceptedTokens > u.DraftedTokens || u.AcceptedTokens > u.OutputTokens {
				t.Errorf("usage %+v", u)
			}
			if st := e.Stats(); st.DraftedTokens != int64(u.DraftedTokens) || st.AcceptedTokens != int64(u.AcceptedTokens) {
				t.Errorf("stats %d of %d accepted, usage %+v", st.AcceptedTokens, st.DraftedTokens, u)
			}
			if w := without.done.Usage; w.DraftedTokens != 0 {
				t.Errorf("%d drafted against the request's wish", w.DraftedTokens)
			}
		})
	}
}

// Whatever is drafted, accepted and refused, tokens and ends are those of an
// answer without drafts, also for the prompts that take over its cached blocks.
func TestLookupChangesNoText(t *testing.T) {
	letters := rapid.SliceOfN(rapid.Int32Range('a', 'c'), 2, 60)
	rapid.Check(t, func(r *rapid.T) {
		first := engine.Request{
			Tokens: letters.Draw(r, "prompt"), MaxTokens: rapid.IntRange(1, 80).Draw(r, "answer"), IgnoreEOS: true,
			Sampling: sample.Params{Temperature: rapid.SampledFrom([]float32{0, 0.3, 1}).Draw(r, "temperature"), Seed: rapid.Uint64().Draw(r, "seed")},
		}
		more := letters.Draw(r, "more")
		var got [2][]int32
		for i, off := range []bool{false, true} {
			e, err := engine.New(newChain(), enginetest.Tokenizer{}, engine.Config{NoLookup: off, NoPrefixCache: off})
			if err != nil {
				r.Fatal(err)
			}
			a := run(t, e, first)
			second := first
			second.Tokens = slices.Concat(first.Tokens, a.tokens, more)
			got[i] = slices.Concat(a.tokens, run(t, e, second).tokens)
			if err := e.Close(t.Context()); err != nil {
				r.Fatal(err)
			}
		}
		if !slices.Equal(got[0], got[1]) {
			r.Fatalf("%v with lookup, %v without", got[0], got[1])
		}
	})
}

// The draws of sampled answers follow the model's distribution when many of them
// were drafted: Pearson's chi-square over the transitions of a small vocabulary.
//
// A share f of the draws that check a draft is enough when a fault in them would show.
// The likely fault is to draw from p, not from p without the draft, after a refusal: a
// draft of probability p then comes out with p + (1−p)p. Over N draws that adds
// N·(f(1−p)p)²/(p(1−p)) = N·f²·p(1−p) to chi-square, with N = 24,000, p about 0.75 and f
// = 1/5 about 180, several times the bound. Seeds are fixed and one answer runs at a
// time, so the counts are the same in each run: 5,971 of 15,992 drafted tokens are
// accepted, 25 % of all.
func TestLookupKeepsTheDistribution(t *testing.T) {
	dec := newChain()
	e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{NoPrefixCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	var seen [states][states]float64
	for seed := range uint64(60) {
		r := engine.Request{Tokens: prompt("abcdabcabcd"), MaxTokens: 400, IgnoreEOS: true, Sampling: sample.Params{Temperature: 1, Seed: seed}}
		last := 'd'
		for _, id := range run(t, e, r).tokens {
			seen[last-'a'][id-'a']++
			last = id
		}
	}
	st := e.Stats()
	if st.AcceptedTokens < st.OutputTokens/5 || st.DraftedTokens-st.AcceptedTokens < st.OutputTokens/20 {
		t.Fatalf("%d tokens, %d drafted, %d accepted: too few to tell", st.OutputTokens, st.DraftedTokens, st.AcceptedTokens)
	}
	square := 0.0
	for from := range states {
		total := 0.0
		for _, n := range seen[from] {
			total += n
		}
		for to, n := range seen[from] {
			want := total * transitions[from][to]
			square += (n - want) * (n - want) / want
		}
	}
	// The 99.99 % quantile of the distribution with 4 · 3 degrees of freedom.
	if square > 39.13 {
		t.Errorf("chi-square %.1f over %d tokens, want at most 39.13: %v", square, st.OutputTokens, seen)
	}
	t.Logf("chi-square %.1f, %d tokens, %d drafted, %d accepted, %d steps", square, st.OutputTokens, st.DraftedTokens, st.AcceptedTokens, st.Steps)
}

// Drafts are for idle machines: none with many running or beside a prompt.
func TestNoDraftsUnderLoad(t *testing.T) {
	dec := enginetest.NewDecoder(256, 2048)
	dec.Next = func([]int32) int32 { return 'a' }
	inBubble(t, engine.Config{StepTokens: 16, PieceTokens: 16}, dec, func(t *testing.T, e *engine.Engine) {
		most := 0
		dec.Before = func(b model.Batch) error {
			prefill, drafted := false, 0
			for _, p := range b {
				prefill = prefill || p.Logits < len(p.Tokens) && len(p.Tokens) > 1
				drafted += max(0, p.Logits-1)
			}
			if drafted > 0 && (prefill || len(b) > 4) || b.Tokens() > 16 {
				t.Errorf("%d drafted tokens in a step of %d answers and %d tokens, prompt %v", drafted, len(b), b.Tokens(), prefill)
			}
			most = max(most, drafted)
			return slowly(b)
		}
		var streams []*engine.Stream
		for i := range 7 {
			streams = append(streams, submit(t, e, request(strings.Repeat("ab", 10+10*i), 40+10*i)))
		}
		for _, s := range streams {
			readAll(t, s)
		}
		if most == 0 {
			t.Error("nothing was drafted at all")
		}
	})
}

// chain is a decoder whose next token depends on the last one alone. It has the
// cache of the fake decoder, and reads the last token from there.
type chain struct{ *enginetest.Decoder }

const states = 4

// transitions are the probabilities of a, b, c, d after each of them.
var transitions = [states][states]float64{
	{0.05, 0.80, 0.10, 0.05},
	{0.10, 0.10, 0.70, 0.10},
	{0.30, 0.05, 0.05, 0.60},
	{0.85, 0.05, 0.05, 0.05},
}

func newChain() chain { return chain{enginetest.NewDecoder(64, 1024)} }

func (c chain) Forward(b model.Batch) ([][]float32, error) {
	if _, err := c.Decoder.Forward(b); err != nil {
		return nil, err
	}
	var rows [][]float32
	for _, p := range b {
		for _, last := range p.Tokens[len(p.Tokens)-p.Logits:] {
			row := make([]float32, enginetest.Vocabulary)
			for id := range row {
				row[id] = float32(math.Inf(-1))
			}
			for to, probability := range transitions[last-'a'] {
				row['a'+to] = float32(math.Log(probability))
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}
