// Package kvcache keeps the books of the key/value cache: which blocks are
// free, which sequence holds which, and which hold a prefix that a later prompt
// can take over. It knows no tensors; a block is a number.
//
// A block holds model.BlockTokens tokens and is in one of three states:
//
//	in use   refs > 0; held by one or more tables
//	cached   refs = 0, in the index; its content can be taken over
//	blank    refs = 0, not in the index
//
// Blank blocks are given out first, then the least recently used cached one; a
// block in use is never given out.
//
// A block enters the index once it is full, under hash(hash of the block before
// it, its tokens, salt). A pool serves one model and the salt names the tenant,
// so that a prompt of one tenant neither reaches nor times the cache of
// another. A hash only finds a candidate: it is taken when the block before it,
// the tokens and the salt are equal.
//
// With Config.Slots, a cached block that is given out leaves its content in a slot of
// slower memory, from which a later prompt fetches it; see Moves.
//
// Two things hold throughout. A table holds a prefix of the index without gaps:
// when a block becomes full and the index already has its like, the table
// takes that one and gives its own back. And a block leaves the index after those
// that continue it, since tables are given back last block first.
package kvcache
