package kvcache

import (
	"slices"
	"testing"
)

// numbered is n tokens counting up from first.
func numbered(first int32, n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = first + int32(i)
	}
	return tokens
}

// reserve fails the test when the pool refuses.
func reserve(t *testing.T, p *Pool, tokens []int32, capacity int, salt string) *Table {
	t.Helper()
	table, ok := p.Reserve(tokens, capacity, salt)
	if !ok {
		t.Fatalf("no room for %d tokens with %d blocks free", capacity, p.Free())
	}
	return table
}

// fill runs tokens through the pool and gives the blocks back.
func fill(t *testing.T, p *Pool, tokens []int32, salt string) {
	t.Helper()
	table := reserve(t, p, tokens, len(tokens), salt)
	p.Commit(table, tokens)
	p.Release(table)
}

func TestReserveTakesOverAPrefix(t *testing.T) {
	p := NewPool(16, Config{})
	prompt := numbered(0, 40)
	fill(t, p, prompt, "")
	for _, c := range []struct {
		name   string
		tokens []int32
		salt   string
		want   int
	}{
		{"the same prompt", prompt, "", 32},
		{"a longer one", append(slices.Clone(prompt), 7, 8, 9), "", 32},
		{"one that parts in the second block", append(numbered(0, 20), numbered(500, 20)...), "", 16},
		{"one that parts at once", numbered(1, 40), "", 0},
		{"exactly two blocks: one token must be left to run", prompt[:32], "", 16},
		{"the same prompt of another tenant", prompt, "other", 0},
		{"an empty prompt", nil, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := reserve(t, p, c.tokens, len(c.tokens)+1, c.salt)
			defer p.Release(table)
			if table.Cached() != c.want {
				t.Errorf("took over %d tokens, want %d", table.Cached(), c.want)
			}
		})
	}
}

func TestSecondBlockAloneIsNoPrefix(t *testing.T) {
	p := NewPool(8, Config{})
	fill(t, p, numbered(0, 32), "")
	table := reserve(t, p, numbered(16, 33), 33, "")
	if table.Cached() != 0 {
		t.Errorf("took over %d tokens that stood after another beginning", table.Cached())
	}
}

func TestNoPrefix(t *testing.T) {
	p := NewPool(8, Config{NoPrefix: true})
	fill(t, p, numbered(0, 40), "")
	table := reserve(t, p, numbered(0, 40), 40, "")
	if table.Cached() != 0 || p.Cached() != 0 {
		t.Errorf("took over %d tokens, %d blocks cached; want none", table.Cached(), p.Cached())
	}
}

func TestReserveRefusesWithoutTaking(t *testing.T) {
	p := NewPool(4, Config{})
	held := reserve(t, p, numbered(0, 20), 33, "")
	if _, ok := p.Reserve(numbered(100, 20), 20, ""); ok {
		t.Fatal("gave out two blocks with one free")
	}
	if p.InUse() != 3 || p.Free() != 1 {
		t.Errorf("in use %d, free %d; want 3 and 1", p.InUse(), p.Free())
	}
	p.Release(held)
	p.Release(held)
	if p.InUse() != 0 || p.Free() != 4 {
		t.Errorf("after release: in use %d, free %d; want 0 and 4", p.InUse(), p.Free())
	}
}

func TestSharedBlocksCountOnce(t *testing.T) {
	p := NewPool(5, Config{})
	prompt := numbered(0, 48)
	first := reserve(t, p, prompt, 49, "")
	p.Commit(first, prompt)
	if need := p.Need(prompt, 49, ""); need != 2 {
		t.Errorf("a second reader of the prompt needs %d blocks, want 2", need)
	}
	if _, ok := p.Reserve(prompt, 49, ""); ok {
		t.Error("gave out two blocks with one free")
	}
	second := reserve(t, p, prompt, 48, "")
	if !slices.Equal(first.Blocks()[:2], second.Blocks()[:2]) {
		t.Errorf("tables %v and %v do not share their beginning", first.Blocks(), second.Blocks())
	}
	if p.InUse() != 5 {
		t.Errorf("in use %d, want 5", p.InUse())
	}
	if a, b := p.Own(first), p.Own(second); a != 2 || b != 1 {
		t.Errorf("%d and %d blocks of their own, want 2 and 1", a, b)
	}
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	p := NewPool(4, Config{})
	old, young := numbered(0, 17), numbered(1000, 17)
	fill(t, p, old, "")
	fill(t, p, young, "")
	fill(t, p, old, "")
	held := reserve(t, p, numbered(2000, 40), 48, "")
	p.Release(held)
	if got := reserve(t, p, young, 17, "").Cached(); got != 0 {
		t.Errorf("the least recently used prefix is still there (%d tokens)", got)
	}
	if got := reserve(t, p, old, 17, "").Cached(); got != 16 {
		t.Errorf("took over %d tokens of the recently used prefix, want 16", got)
	}
}

func TestTwinsBecomeOne(t *testing.T) {
	p := NewPool(4, Config{})
	prompt := numbered(0, 32)
	a, b := reserve(t, p, prompt, 32, ""), reserve(t, p, prompt, 32, "")
	p.Commit(a, prompt)
	p.Commit(b, prompt)
	if !slices.Equal(a.Blocks(), b.Blocks()) || p.InUse() != 2 {
		t.Errorf("tables %v and %v, %d blocks in use; want equal tables of 2", a.Blocks(), b.Blocks(), p.InUse())
	}
}

func TestBlocksOf(t *testing.T) {
	for tokens, want := range map[int]int{0: 0, 1: 1, 16: 1, 17: 2, 1000: 63} {
		if got := BlocksOf(tokens); got != want {
			t.Errorf("BlocksOf(%d) = %d, want %d", tokens, got, want)
		}
	}
}
