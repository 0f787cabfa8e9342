package engine

import (
	"testing"

	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
	"ragd/inference/sample"
)

// steady is a decoder that allocates nothing and says the same words again and
// again, printable bytes that no grammar or stop holds up.
type steady struct {
	*enginetest.Decoder
	rows   [][]float32
	logits [26][enginetest.Vocabulary]float32
}

func newSteady(blocks, context int) *steady {
	d := &steady{Decoder: enginetest.NewDecoder(blocks, context)}
	for i := range d.logits {
		d.logits[i]['a'+i] = 20
	}
	return d
}

func (d *steady) Forward(b model.Batch) ([][]float32, error) {
	d.rows = d.rows[:0]
	for i := range b {
		end := b[i].Start + len(b[i].Tokens)
		for at := end - b[i].Logits; at < end; at++ {
			d.rows = append(d.rows, d.logits[at%len(d.logits)][:])
		}
	}
	return d.rows, nil
}

// syllables is a tokenizer whose tokens are parts of words, as real ones are.
type syllables struct{ enginetest.Tokenizer }

var syllable = []byte("syl라")

func (syllables) Piece(int32) []byte { return syllable }

// TestStepsDoNotAllocate: a decoding step allocates nothing, whatever runs, from
// the queue to the text, and neither does one that reads a piece of a prompt. What a
// reader takes is the reader's; here the text is only dropped.
func TestStepsDoNotAllocate(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     Config
		running int
		prompt  int
		answer  int
		params  sample.Params
		confide bool
	}{
		"one answer":        {running: 1, prompt: 40, answer: 900, cfg: Config{NoLookup: true}},
		"eight answers":     {running: 8, prompt: 40, answer: 900},
		"drafts":            {running: 1, prompt: 40, answer: 3500},
		"sampled":           {running: 4, prompt: 40, answer: 900, params: sample.Params{Temperature: 0.7, TopP: 0.9, TopK: 40, RepetitionPenalty: 1.1, Seed: 1}, cfg: Config{NoLookup: true}},
		"with confidence":   {running: 2, prompt: 40, answer: 900, confide: true, cfg: Config{NoLookup: true}},
		"pieces of prompts": {running: 1, prompt: 4000, answer: 1, cfg: Config{PieceTokens: 8, NoPrefixCache: true}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := build(newSteady(1024, 8192), syllables{}, c.cfg)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.running {
				r := Request{Tokens: make([]int32, c.prompt), MaxTokens: c.answer, IgnoreEOS: true, Confidence: c.confide, Sampling: c.params}
				for j := range r.Tokens {
					r.Tokens[j] = int32('a' + (i+j)%26)
				}
				if _, err := e.Submit(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			step := func() {
				e.settle()
				e.step()
				for _, s := range e.loop.running {
					s.feed.stream.text, s.feed.stream.tokens = s.feed.stream.text[:0], s.feed.stream.tokens[:0]
				}
			}
			for range 100 { // scratch grows
				step()
			}
			before := e.stats.Steps
			if n := testing.AllocsPerRun(100, step); n > 0 {
				t.Errorf("%g allocations a step", n)
			}
			if len(e.loop.running) != c.running || e.stats.Steps-before < 100 || e.stats.Failed > 0 {
				t.Fatalf("%d running, %d steps, %d failed: nothing was measured", len(e.loop.running), e.stats.Steps-before, e.stats.Failed)
			}
		})
	}
}
