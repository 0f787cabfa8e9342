package kvcache

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ragd/inference/model"
)

// life is a pool beside a plain model of it: what the tables hold, and which
// tokens were last written to each block.
type life struct {
	pool    *Pool
	running []*sequence
	content []written
	slots   []written
}

// written is what a block holds: the tokens of a sequence up to its end.
type written struct {
	salt   string
	prefix []int32
}

type sequence struct {
	table    *Table
	tokens   []int32
	done     int
	capacity int
	salt     string
}

// Collisions of the hash, reuse, sharing and eviction in any order: no block is
// lost, given out twice, or read for a prompt that did not write it.
func TestPoolProperties(t *testing.T) {
	hashes := map[string]hashFunc{
		"real":     nil,
		"constant": func(uint64, []int32, string) uint64 { return 1 },
		"two":      func(_ uint64, tokens []int32, _ string) uint64 { return uint64(tokens[0]) & 1 },
	}
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				size, slots := rapid.IntRange(1, 12).Draw(t, "blocks"), rapid.IntRange(0, 6).Draw(t, "slots")
				l := &life{pool: NewPool(size, Config{Slots: slots}), content: make([]written, size), slots: make([]written, slots)}
				if hash != nil {
					l.pool.hash = hash
				}
				t.Repeat(map[string]func(*rapid.T){
					"admit": l.admit, "grow": l.grow, "run": l.run, "finish": l.finish, "": l.check,
				})
			})
		})
	}
}

func (l *life) admit(t *rapid.T) {
	// Runs of a few lengths over two token values make common prefixes likely.
	var tokens []int32
	for range rapid.IntRange(1, 3).Draw(t, "runs") {
		value := rapid.Int32Range(0, 1).Draw(t, "value")
		for range rapid.SampledFrom([]int{3, 8, 16}).Draw(t, "length") {
			tokens = append(tokens, value)
		}
	}
	s := &sequence{tokens: tokens, salt: rapid.SampledFrom([]string{"", "b"}).Draw(t, "salt")}
	s.capacity = len(tokens) + rapid.IntRange(0, 20).Draw(t, "answer")
	need, free := l.pool.Need(tokens, s.capacity, s.salt), l.pool.Free()
	table, ok := l.pool.Reserve(tokens, s.capacity, s.salt)
	if ok != (need <= free) {
		t.Fatalf("need %d of %d free, admitted %v", need, free, ok)
	}
	if !ok {
		return
	}
	if used := free - l.pool.Free(); used != need {
		t.Fatalf("used up %d blocks, said %d", used, need)
	}
	s.table, s.done = table, table.Cached()
	l.running = append(l.running, s)
	l.move()
}

// move makes the copies that the pool asks for.
func (l *life) move() {
	for _, m := range l.pool.Moves() {
		if m.Save {
			l.slots[m.Slot] = l.content[m.Block]
		} else {
			l.content[m.Block] = l.slots[m.Slot]
		}
	}
}

// grow makes room for a longer answer, in whole blocks that were free.
func (l *life) grow(t *rapid.T) {
	if len(l.running) == 0 {
		return
	}
	s := rapid.SampledFrom(l.running).Draw(t, "sequence")
	capacity := s.capacity + rapid.IntRange(0, 40).Draw(t, "more")
	held, free := len(s.table.Blocks()), l.pool.Free()
	more := max(0, BlocksOf(capacity)-held)
	ok := l.pool.Grow(s.table, capacity)
	if ok != (more <= free) {
		t.Fatalf("%d more blocks with %d free, grown %v", more, free, ok)
	}
	if !ok {
		more, capacity = 0, s.capacity
	}
	if got := len(s.table.Blocks()) - held; got != more || free-l.pool.Free() != more {
		t.Fatalf("grew by %d blocks, %d free before and %d after; want %d", got, free, l.pool.Free(), more)
	}
	if s.capacity = capacity; s.table.Capacity() < capacity {
		t.Fatalf("the table holds %d positions, want %d", s.table.Capacity(), capacity)
	}
	l.move()
}

func (l *life) run(t *rapid.T) {
	if len(l.running) == 0 {
		return
	}
	s := rapid.SampledFrom(l.running).Draw(t, "sequence")
	for len(s.tokens) < s.capacity && rapid.Bool().Draw(t, "grow") {
		s.tokens = append(s.tokens, rapid.Int32Range(0, 1).Draw(t, "token"))
	}
	for n := rapid.IntRange(0, len(s.tokens)-s.done).Draw(t, "n"); n > 0; n-- {
		id := s.table.Blocks()[s.done/model.BlockTokens]
		if l.pool.blocks[id].refs != 1 {
			t.Fatalf("writes to block %d, which %d tables hold", id, l.pool.blocks[id].refs)
		}
		s.done++
		l.content[id] = written{s.salt, slices.Clone(s.tokens[:s.done])}
	}
	l.pool.Commit(s.table, s.tokens[:s.done])
}

func (l *life) finish(t *rapid.T) {
	if len(l.running) == 0 {
		return
	}
	i := rapid.IntRange(0, len(l.running)-1).Draw(t, "which")
	l.pool.Release(l.running[i].table)
	l.running = slices.Delete(l.running, i, i+1)
}

func (l *life) check(t *rapid.T) {
	refs := make([]int32, len(l.content))
	for _, s := range l.running {
		if got := len(s.table.Blocks()); got != BlocksOf(s.capacity) {
			t.Fatalf("table of %d blocks for %d tokens", got, s.capacity)
		}
		for i, id := range s.table.Blocks() {
			refs[id]++
			end := min((i+1)*model.BlockTokens, s.done)
			if i*model.BlockTokens >= end {
				continue
			}
			if w := l.content[id]; w.salt != s.salt || !slices.Equal(w.prefix, s.tokens[:end]) {
				t.Fatalf("block %d holds %v, the sequence has %v", id, w.prefix, s.tokens[:end])
			}
		}
	}
	l.checkStates(t, refs)
}

// checkStates checks that each block is in exactly one state and that the index
// has no block whose parent left it.
func (l *life) checkStates(t *rapid.T, refs []int32) {
	free := make(map[int32]int)
	for _, id := range l.pool.blank {
		free[id]++
		if l.pool.blocks[id].indexed {
			t.Fatalf("blank block %d is in the index", id)
		}
	}
	for id := l.pool.lru.head; id != none; id = l.pool.blocks[id].next {
		free[id]++
	}
	inUse := 0
	for id, want := range refs {
		b := l.pool.blocks[id]
		if b.refs != want {
			t.Fatalf("block %d has %d references, want %d", id, b.refs, want)
		}
		if want > 0 {
			inUse++
		}
		if (want > 0) == (free[int32(id)] == 1) || free[int32(id)] > 1 {
			t.Fatalf("block %d: %d references, %d times free", id, want, free[int32(id)])
		}
	}
	l.checkIndex(t)
	if l.pool.InUse() != inUse || l.pool.Free() != len(refs)-inUse {
		t.Fatalf("in use %d, free %d; want %d, %d", l.pool.InUse(), l.pool.Free(), inUse, len(refs)-inUse)
	}
}

// checkIndex checks that blocks and slots hold what the index says, and that none is
// there whose parent left it.
func (l *life) checkIndex(t *rapid.T) {
	serials := map[uint64]bool{0: true}
	for _, b := range l.pool.blocks {
		if b.indexed && serials[b.serial] {
			t.Fatalf("prefix %d is kept twice", b.serial)
		}
		serials[b.serial] = serials[b.serial] || b.indexed
	}
	filled := 0
	for id, b := range l.pool.blocks {
		if !b.indexed {
			continue
		}
		if !serials[b.parent] {
			t.Fatalf("block %d is in the index without its parent", id)
		}
		var w written
		if l.pool.isSlot(int32(id)) {
			w = l.slots[id-l.pool.size]
			filled++
		} else {
			w = l.content[id]
		}
		if n := len(w.prefix) - model.BlockTokens; n < 0 || w.salt != b.salt || !slices.Equal(w.prefix[n:], b.tokens[:]) {
			t.Fatalf("block %d of the index holds %v", id, w)
		}
	}
	if filled != l.pool.Offloaded() {
		t.Fatalf("%d slots are in the index, %d hold a prefix", filled, l.pool.Offloaded())
	}
}
