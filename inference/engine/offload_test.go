package engine_test

import (
	"errors"
	"strings"
	"testing"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
)

// moving is a decoder that keeps blocks in host memory, too.
type moving struct {
	*enginetest.Decoder
	slots []enginetest.Block
	moves int
	fail  error
}

func (m *moving) Slots() int { return len(m.slots) }

func (m *moving) MoveBlocks(moves []model.BlockMove) error {
	for _, v := range moves {
		m.moves++
		if v.Save {
			m.slots[v.Slot] = *m.Block(v.Block)
		} else {
			*m.Block(v.Block) = m.slots[v.Slot]
		}
	}
	return m.fail
}

// Prompts that push each other out of the cache find their prefixes in host memory; the
// answers are those of a cache with room for all.
func TestPrefixesReturnFromHostMemory(t *testing.T) {
	dec := &moving{Decoder: enginetest.NewDecoder(6, 512), slots: make([]enginetest.Block, 12)}
	small, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	large, err := engine.New(enginetest.NewDecoder(64, 512), enginetest.Tokenizer{}, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	prompts := []string{strings.Repeat("a first long prompt. ", 3), strings.Repeat("and quite another. ", 3), strings.Repeat("a third one comes. ", 3)}
	for round := range 3 {
		for _, p := range prompts {
			r := request(p, 12)
			r.IgnoreEOS = true
			got, want := readAll(t, submit(t, small, r)), readAll(t, submit(t, large, r))
			if got.text != want.text {
				t.Fatalf("round %d: %q, want %q", round, got.text, want.text)
			}
			if got.done.Usage.CachedTokens != want.done.Usage.CachedTokens {
				t.Errorf("round %d: %d tokens cached, want %d", round, got.done.Usage.CachedTokens, want.done.Usage.CachedTokens)
			}
		}
	}
	if s := small.Stats(); dec.moves == 0 || s.BlocksOffloaded == 0 {
		t.Errorf("%d moves, %d blocks in host memory", dec.moves, s.BlocksOffloaded)
	}
	// A copy fails: so does what ran, and no prefix is trusted afterwards.
	dec.fail = errors.New("copy failed")
	if a := readAll(t, submit(t, small, request(prompts[0], 12))); !errors.Is(a.failed.Err, dec.fail) {
		t.Errorf("the answer ended with %+v", a)
	}
	dec.fail = nil
	if a := readAll(t, submit(t, small, request(prompts[0], 12))); a.done.Usage.CachedTokens != 0 || a.done.Reason == "" {
		t.Errorf("after a failed copy: %+v", a.done)
	}
	for _, e := range []*engine.Engine{small, large} {
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
