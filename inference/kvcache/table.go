package kvcache

import (
	"slices"

	"ragd/inference/model"
)

// Table is the block table of one sequence: position p lies in block
// Blocks()[p/model.BlockTokens]. It is made by Pool.Reserve and enlarged by Pool.Grow.
type Table struct {
	blocks  []int32
	salt    string
	cached  int    // tokens taken over from the index
	indexed int    // leading blocks that are in the index
	hash    uint64 // hash of block indexed-1
}

// Blocks are the block numbers. They are valid until the next Grow, Commit or
// Release.
func (t *Table) Blocks() []int32 { return t.blocks }

// Capacity is how many positions the blocks hold.
func (t *Table) Capacity() int { return len(t.blocks) * model.BlockTokens }

// Cached is the number of leading tokens whose keys and values were already
// there.
func (t *Table) Cached() int { return t.cached }

// BlocksOf is how many blocks a sequence of that many tokens takes.
func BlocksOf(tokens int) int {
	return (tokens + model.BlockTokens - 1) / model.BlockTokens
}

// Need is how many free blocks Reserve would use up. Admitting another sequence
// first can only make it smaller.
func (p *Pool) Need(tokens []int32, capacity int, salt string) int {
	need := BlocksOf(capacity)
	p.prefix(tokens, salt, func(id int32) {
		if p.blocks[id].refs > 0 {
			need--
		}
	})
	return need
}

// Reserve makes a table for a sequence that starts with tokens, with blocks for
// capacity positions (at least their number). It reports false, and takes nothing,
// when too few are free.
func (p *Pool) Reserve(tokens []int32, capacity int, salt string) (*Table, bool) {
	if p.Need(tokens, capacity, salt) > p.Free() {
		return nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &Table{salt: salt, blocks: make([]int32, 0, BlocksOf(capacity))}
	p.prefix(tokens, salt, func(id int32) {
		p.hold(id)
		t.blocks = append(t.blocks, id)
		t.hash = p.blocks[id].hash
	})
	for i, id := range t.blocks {
		t.blocks[i] = p.fetch(id)
	}
	t.indexed = len(t.blocks)
	t.cached = t.indexed * model.BlockTokens
	for len(t.blocks) < cap(t.blocks) {
		t.blocks = append(t.blocks, p.take())
	}
	// Blocks of an earlier sequence come back last first. In order, neighbours in
	// the sequence are mostly neighbours in memory, which attention reads faster.
	slices.Sort(t.blocks[t.indexed:])
	return t, true
}

// Grow adds the blocks that a table lacks for capacity positions. It reports false, and
// takes nothing, when too few are free.
func (p *Pool) Grow(t *Table, capacity int) bool {
	more := BlocksOf(capacity) - len(t.blocks)
	if more <= 0 {
		return true
	}
	if more > p.Free() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for range more {
		t.blocks = append(t.blocks, p.take())
	}
	return true
}

// Own is how many blocks no other table holds, those that a Release would free.
func (p *Pool) Own(t *Table) (n int) {
	for _, id := range t.blocks {
		if p.blocks[id].refs == 1 {
			n++
		}
	}
	return n
}

// Warm is how many of the first tokens Reserve would take over now. It is safe for
// concurrent use.
func (p *Pool) Warm(tokens []int32, salt string) int {
	p.mu.RLock()
	defer p.mu.RUnlock()
	n := 0
	p.prefix(tokens, salt, func(int32) { n += model.BlockTokens })
	return n
}

// Commit says that the keys and values of tokens, the sequence from its
// beginning, are in the cache. Blocks that became full enter the index.
func (p *Pool) Commit(t *Table, tokens []int32) {
	if p.noPrefix {
		return
	}
	if (t.indexed+1)*model.BlockTokens > len(tokens) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for end := (t.indexed + 1) * model.BlockTokens; end <= len(tokens); end += model.BlockTokens {
		content := tokens[end-model.BlockTokens : end]
		parent := uint64(0)
		if t.indexed > 0 {
			parent = p.blocks[t.blocks[t.indexed-1]].serial
		}
		t.hash = p.hash(t.hash, content, t.salt)
		own := t.blocks[t.indexed]
		switch same := p.find(t.hash, parent, content, t.salt); {
		case same == none:
			p.enter(own, t.hash, parent, content, t.salt)
		case p.isSlot(same):
			p.old.remove(p.blocks, same)
			p.relocate(same, own)
			p.empty = append(p.empty, same)
		default:
			p.share(same)
			p.drop(own)
			t.blocks[t.indexed] = same
		}
		t.indexed++
	}
}

// Release gives the blocks back; those in the index stay there until others
// need the room. Releasing twice does nothing.
func (p *Pool) Release(t *Table) {
	for i := len(t.blocks) - 1; i >= 0; i-- {
		p.drop(t.blocks[i])
	}
	t.blocks = nil
}
