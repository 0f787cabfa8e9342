package kvcache

import (
	"encoding/binary"
	"hash/maphash"
	"slices"

	"ragd/inference/model"
)

// seededHash is a hash that nobody outside the process can aim at.
func seededHash(seed maphash.Seed) hashFunc {
	return func(parent uint64, tokens []int32, salt string) uint64 {
		var buf [8 + 4*model.BlockTokens]byte
		binary.LittleEndian.PutUint64(buf[:], parent)
		for i, t := range tokens {
			binary.LittleEndian.PutUint32(buf[8+4*i:], uint32(t))
		}
		var h maphash.Hash
		h.SetSeed(seed)
		h.Write(buf[:])
		h.WriteString(salt)
		return h.Sum64()
	}
}

// find is the block or slot of the index that holds tokens after parent, or none.
func (p *Pool) find(hash, parent uint64, tokens []int32, salt string) int32 {
	id, ok := p.index[hash]
	if !ok {
		return none
	}
	for ; id != none; id = p.blocks[id].sameHash {
		b := &p.blocks[id]
		if b.parent == parent && b.salt == salt && slices.Equal(b.tokens[:], tokens) {
			return id
		}
	}
	return none
}

// prefix calls yield for each block or slot of the index that tokens start with, in
// order. The last token is never part of it: something must be left to run, or
// there would be no logits.
func (p *Pool) prefix(tokens []int32, salt string, yield func(id int32)) {
	if p.noPrefix {
		return
	}
	hash, parent := uint64(0), uint64(0)
	for len(tokens) > model.BlockTokens {
		content := tokens[:model.BlockTokens]
		hash = p.hash(hash, content, salt)
		id := p.find(hash, parent, content, salt)
		if id == none {
			return
		}
		parent = p.blocks[id].serial
		yield(id)
		tokens = tokens[model.BlockTokens:]
	}
}

// enter puts a full block into the index, as a new prefix.
func (p *Pool) enter(id int32, hash, parent uint64, tokens []int32, salt string) {
	p.serial++
	b := &p.blocks[id]
	b.indexed, b.hash, b.serial, b.parent, b.salt = true, hash, p.serial, parent, salt
	copy(b.tokens[:], tokens)
	p.link(id)
}

// link makes a block or slot the first under its hash.
func (p *Pool) link(id int32) {
	b := &p.blocks[id]
	b.sameHash = none
	if first, ok := p.index[b.hash]; ok {
		b.sameHash = first
	}
	p.index[b.hash] = id
}

// relocate hands what the index knows of one block or slot to another one.
func (p *Pool) relocate(from, to int32) {
	b, refs := p.blocks[from], p.blocks[to].refs
	p.unindex(from)
	b.refs, b.indexed = refs, true
	p.blocks[to] = b
	p.link(to)
}

// unindex takes a block out of the index.
func (p *Pool) unindex(id int32) {
	b := &p.blocks[id]
	b.indexed, b.salt = false, ""
	first := p.index[b.hash]
	if first == id {
		if b.sameHash == none {
			delete(p.index, b.hash)
		} else {
			p.index[b.hash] = b.sameHash
		}
		return
	}
	for p.blocks[first].sameHash != id {
		first = p.blocks[first].sameHash
	}
	p.blocks[first].sameHash = b.sameHash
}
