package kvcache

import "ragd/inference/model"

// Slots are blocks of slower memory: a prefix whose block is given to others goes to
// one, and comes back into a block when a prompt begins with it. The pool only writes
// down which content has to be copied; see Moves. A slot has no references.

func (p *Pool) isSlot(id int32) bool { return int(id) >= p.size }

// Offloaded is the number of slots that hold a prefix.
func (p *Pool) Offloaded() int { return len(p.blocks) - p.size - len(p.empty) }

// Moves are the copies between blocks and slots that have to be made, in order, before
// the next step runs. Each call forgets those it returned.
func (p *Pool) Moves() []model.BlockMove {
	moves := p.moves
	p.moves = nil
	return moves
}

// offload takes a block that is to be given out from the index: into a slot, or
// altogether where all slots are being fetched or there are none.
func (p *Pool) offload(id int32) {
	var slot int32
	switch n := len(p.empty); {
	case n > 0:
		slot = p.empty[n-1]
		p.empty = p.empty[:n-1]
	case p.old.head != none:
		slot = p.old.head
		p.old.remove(p.blocks, slot)
		p.unindex(slot)
	default:
		p.unindex(id)
		return
	}
	p.relocate(id, slot)
	p.old.push(p.blocks, slot)
	p.moves = append(p.moves, model.BlockMove{Block: id, Slot: slot - int32(p.size), Save: true})
}

// hold keeps a block or slot of the index from being given out.
func (p *Pool) hold(id int32) {
	if p.isSlot(id) {
		p.old.remove(p.blocks, id)
	} else {
		p.share(id)
	}
}

// fetch is the block of something held: itself, or one into which a slot comes back.
func (p *Pool) fetch(id int32) int32 {
	if !p.isSlot(id) {
		return id
	}
	block := p.take()
	p.moves = append(p.moves, model.BlockMove{Block: block, Slot: id - int32(p.size)})
	p.relocate(id, block)
	p.empty = append(p.empty, id)
	return block
}
