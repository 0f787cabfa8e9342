package kvcache

import (
	"hash/maphash"
	"sync"

	"ragd/inference/model"
)

// none is the block before a first block, and the end of a list.
const none = int32(-1)

// Config has the tunables of a pool.
type Config struct {
	// NoPrefix turns the prefix index off: nothing is taken over.
	NoPrefix bool
	// Slots is how many blocks there are in slower memory, where prefixes go when their
	// block is given to others.
	Slots int
}

// Pool gives out blocks and finds prefixes. It belongs to one goroutine, but others
// may ask for Warm.
type Pool struct {
	// mu guards the index, what it holds of blocks included, against Warm: the owner
	// takes it to change the index, others to read it.
	mu       sync.RWMutex
	noPrefix bool
	hash     hashFunc
	size     int              // blocks; the slots of slower memory follow them
	blocks   []block          // and slots
	blank    []int32          // stack of blocks without content
	lru      list             // cached blocks, oldest first
	empty    []int32          // stack of slots without content
	old      list             // slots with content, oldest first
	index    map[uint64]int32 // hash → first block of a chain of equal hashes
	serial   uint64           // of the newest prefix
	moves    []model.BlockMove
	inUse    int
}

// block is what is known of one block. The fields after refs have a meaning
// only while it is in the index.
type block struct {
	refs       int32
	indexed    bool
	hash       uint64
	serial     uint64 // of the prefix that ends with it, wherever it is kept
	parent     uint64 // serial of the prefix before it; 0 for none
	tokens     [model.BlockTokens]int32
	salt       string
	sameHash   int32 // next block of the index under the same hash
	prev, next int32 // neighbours in the list of cached blocks
}

// hashFunc chains the hash of the blocks before (0 for none) with a block.
type hashFunc func(parent uint64, tokens []int32, salt string) uint64

// NewPool makes a pool of blank blocks numbered from 0.
func NewPool(blocks int, cfg Config) *Pool {
	p := &Pool{
		noPrefix: cfg.NoPrefix,
		hash:     seededHash(maphash.MakeSeed()),
		size:     blocks,
		blocks:   make([]block, blocks+cfg.Slots),
	}
	p.Clear()
	return p
}

// Clear forgets all prefixes, after their contents became doubtful. No table may hold
// blocks.
func (p *Pool) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.blocks)
	p.lru, p.old = list{head: none, tail: none}, list{head: none, tail: none}
	p.index, p.moves, p.inUse = make(map[uint64]int32), nil, 0
	p.blank, p.empty = p.blank[:0], p.empty[:0]
	for id := len(p.blocks) - 1; id >= 0; id-- {
		if id < p.size {
			p.blank = append(p.blank, int32(id))
		} else {
			p.empty = append(p.empty, int32(id))
		}
	}
}

// InUse is the number of blocks held by tables; a shared block counts once.
func (p *Pool) InUse() int { return p.inUse }

// Free is the number of blocks that can be given out: blank and cached ones.
func (p *Pool) Free() int { return p.size - p.inUse }

// Cached is the number of blocks that hold a prefix nobody is using.
func (p *Pool) Cached() int { return p.Free() - len(p.blank) }

// take gives out a block with one reference. The caller has made sure that one
// is free.
func (p *Pool) take() int32 {
	var id int32
	if n := len(p.blank); n > 0 {
		id = p.blank[n-1]
		p.blank = p.blank[:n-1]
	} else {
		id = p.lru.head
		p.lru.remove(p.blocks, id)
		p.offload(id)
	}
	p.blocks[id].refs = 1
	p.inUse++
	return id
}

// share adds a reference to a block of the index.
func (p *Pool) share(id int32) {
	b := &p.blocks[id]
	if b.refs == 0 {
		p.lru.remove(p.blocks, id)
		p.inUse++
	}
	b.refs++
}

// drop removes a reference.
func (p *Pool) drop(id int32) {
	b := &p.blocks[id]
	b.refs--
	if b.refs > 0 {
		return
	}
	p.inUse--
	if b.indexed {
		p.lru.push(p.blocks, id)
	} else {
		p.blank = append(p.blank, id)
	}
}

// list is a doubly linked list through the blocks themselves.
type list struct{ head, tail int32 }

func (l *list) push(blocks []block, id int32) {
	blocks[id].prev, blocks[id].next = l.tail, none
	if l.tail == none {
		l.head = id
	} else {
		blocks[l.tail].next = id
	}
	l.tail = id
}

func (l *list) remove(blocks []block, id int32) {
	prev, next := blocks[id].prev, blocks[id].next
	if prev == none {
		l.head = next
	} else {
		blocks[prev].next = next
	}
	if next == none {
		l.tail = prev
	} else {
		blocks[next].prev = prev
	}
}
