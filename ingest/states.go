package ingest

import (
	"context"
	"errors"
)

// ErrStates: token states are to be kept, but the embedder gives none.
var ErrStates = errors.New("the embedder gives no token states")

// States are the last hidden states of a text's content tokens, for late
// interaction: int8 with one scale a token.
type States struct {
	Scales []float32 // one a token
	Values []int8    // Dim a token, one token after the other
}

// Tokens is how many states there are.
func (s *States) Tokens() int {
	if s == nil {
		return 0
	}
	return len(s.Scales)
}

// MaxStateBytes bounds what is kept of one chunk.
const MaxStateBytes = 256 << 10

// MaxStates is how many token states of dim values one chunk may keep: those of the
// rarest tokens, as the embedder tells.
func MaxStates(dim int) int { return max(MaxStateBytes/(4+dim), 1) }

// StateEmbedder is an Embedder that also gives token states, out of the same pass.
type StateEmbedder interface {
	Embedder
	// EmbedPassageStates is EmbedPassages with the States of the texts that are
	// wanted, at most limit tokens of each.
	EmbedPassageStates(ctx context.Context, texts []string, wanted []bool, limit int) ([]Embedding, error)
}
