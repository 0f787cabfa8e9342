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
}

// Pool gives out blocks and finds prefixes. It belongs to one goroutine, but others
// may ask for Warm.
type Pool struct {
	// mu guards the index, what it holds of blocks included, against Warm: the owner
	// takes it to change the index, others to read it.
	mu       sync.RWMutex
	noPrefix bool
	hash     hashFunc
	blocks   []block
	blank    []int32          // stack of blocks without content
	lru      list             // cached blocks, oldest first
	index    map[uint64]int32 // hash → first block of a chain of equal hashes
	inUse    int
}

// block is what is known of one block. The fields after refs have a meaning
// only while it is in the index.
type block struct {
	refs       int32
	indexed    bool
	hash       uint64
	parent     int32 // the block before it in its prompt, or none
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
		blocks:   make([]block, blocks),
		blank:    make([]int32, blocks),
		lru:      list{head: none, tail: none},
		index:    make(map[uint64]int32),
	}
	for i := range p.blank {
		p.blank[i] = int32(blocks - 1 - i)
	}
	return p
}

// Blocks is the size of the pool.
func (p *Pool) Blocks() int { return len(p.blocks) }

// InUse is the number of blocks held by tables; a shared block counts once.
func (p *Pool) InUse() int { return p.inUse }

// Free is the number of blocks that can be given out: blank and cached ones.
func (p *Pool) Free() int { return len(p.blocks) - p.inUse }

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
		p.unindex(id)
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
