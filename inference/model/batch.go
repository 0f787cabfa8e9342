package model

// BlockTokens is the number of tokens one KV cache block holds.
const BlockTokens = 16

// Piece is the part of one sequence that takes part in a step: a slice of a
// prompt being prefilled, or the newest token(s) of a running answer.
type Piece struct {
	// Tokens are the ids to run, one to many.
	Tokens []int32
	// Start is the position of Tokens[0] in its sequence, which is also the
	// number of tokens of that sequence already in the cache.
	Start int
	// Blocks is the block table of the sequence: position p lies in block
	// Blocks[p/BlockTokens]. It covers Start+len(Tokens) positions.
	Blocks []int32
	// Logits is how many of the last tokens need logits: 0 while more of the
	// prompt is to come, 1 for an ordinary step, 1+k when k drafted tokens are
	// checked.
	Logits int
}

// Batch is one ragged step over several sequences. A decoder runs all pieces
// together; results for a piece do not depend on what else is in the batch.
type Batch []Piece

// Tokens is the number of token rows in the batch.
func (b Batch) Tokens() int {
	n := 0
	for i := range b {
		n += len(b[i].Tokens)
	}
	return n
}

// Decoder is a causal language model with its weights and KV cache on one
// backend. It belongs to one goroutine.
type Decoder interface {
	// Config describes the model.
	Config() Config
	// Blocks is how many KV cache blocks were reserved at start.
	Blocks() int
	// Forward runs the batch and appends its keys and values to the cache.
	// It returns one row of Config().Vocab logits for each requested row, in
	// batch order; rows stay valid until the next call.
	Forward(b Batch) ([][]float32, error)
	// Close frees weights and cache.
	Close() error
}
