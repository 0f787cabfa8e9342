package kvcache

import (
	"sync"
	"testing"

	"ragd/inference/model"
)

func TestWarmIsWhatReserveTakesOver(t *testing.T) {
	p := NewPool(16, Config{})
	text := numbered(1, 5*model.BlockTokens)
	fill(t, p, text[:3*model.BlockTokens], "a")
	for _, c := range []struct {
		tokens []int32
		salt   string
		want   int
	}{
		{text, "a", 3 * model.BlockTokens},
		{text[:3*model.BlockTokens], "a", 2 * model.BlockTokens}, // the last token is always run
		{text, "b", 0},
		{text[1:], "a", 0},
		{nil, "a", 0},
	} {
		got := p.Warm(c.tokens, c.salt)
		if got != c.want {
			t.Errorf("%d tokens of %s: %d warm, want %d", len(c.tokens), c.salt, got, c.want)
		}
		if len(c.tokens) == 0 {
			continue
		}
		table := reserve(t, p, c.tokens, len(c.tokens), c.salt)
		if table.Cached() != got {
			t.Errorf("%d tokens of %s: took over %d, Warm said %d", len(c.tokens), c.salt, table.Cached(), got)
		}
		p.Release(table)
	}
}

// Run with -race: others look while the owner works.
func TestWarmBesideTheOwner(t *testing.T) {
	p := NewPool(8, Config{})
	done := make(chan struct{})
	var looking sync.WaitGroup
	for range 3 {
		looking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if n := p.Warm(numbered(1, 4*model.BlockTokens), ""); n%model.BlockTokens != 0 {
					t.Errorf("%d tokens are no whole blocks", n)
				}
			}
		})
	}
	for i := range 200 {
		fill(t, p, numbered(int32(i%3), 5*model.BlockTokens), "")
	}
	close(done)
	looking.Wait()
}
