// Package retrieve finds the chunks of a corpus that may answer a question.
package retrieve

import (
	"context"

	"ragd/ingest"
)

// ErrUnavailable is returned when the database cannot be reached; the request
// may be tried again.
var ErrUnavailable = ingest.ErrUnavailable

// ErrNoCollection is returned, as a *NoCollectionError, when a named collection
// does not exist.
var ErrNoCollection = ingest.ErrNoCollection

// ErrModel is returned, as a *ModelError, when the vectors of a collection are of
// another embedding model than the query's.
var ErrModel = ingest.ErrModel

// The errors with their names.
type (
	NoCollectionError = ingest.NoCollectionError
	ModelError        = ingest.ModelError
)

// Filters narrow a query to documents.
type Filters struct {
	// PathPrefix keeps documents whose path starts with it, literally.
	PathPrefix string
	// Metadata keeps documents that have, for every key, one of the values.
	Metadata map[string][]string
}

// Query is one search.
type Query struct {
	Text   string
	Vector []float32 // the question's embedding, unit length
	Model  string    // the embedding model of Vector
	// States are of the question's tokens, where late interaction asks for them.
	States States
	// Collections are searched as if they were one.
	Collections []string
	Limit       int
	Filters     Filters
	// Observe is told of the parts of the search; nil when nobody measures.
	Observe Observe
}

// States are the last hidden states of a question's content tokens.
type States struct {
	Rows []float32 // one token after the other, each as long as the question's vector
	// Weights say how much each token counts, for its rarity.
	Weights []float32
}

// Part is a part of a search that is measured apart.
type Part string

// The parts. Dense and Lexical run side by side, Fuse follows.
const (
	Dense   Part = "dense"
	Lexical Part = "lexical"
	Fuse    Part = "fuse"
)

// Observe is called at the start of a part. The part runs under the returned
// context and calls end with its outcome. It must be safe for concurrent use.
type Observe func(ctx context.Context, p Part) (inner context.Context, end func(error))

// Begin starts a part of the search.
func (q Query) Begin(ctx context.Context, p Part) (context.Context, func(error)) {
	if q.Observe == nil {
		return ctx, func(error) {}
	}
	return q.Observe(ctx, p)
}

// Document is where a hit comes from.
type Document struct {
	ID         int64  `json:"id"`
	Collection string `json:"collection"`
	Path       string `json:"path"`
	Title      string `json:"title"`
}

// Scores explains a hit's place. A rank of 0 means: not in that list.
type Scores struct {
	DenseRank   int     `json:"dense_rank,omitempty"`
	Dense       float32 `json:"dense,omitempty"` // cosine
	LexicalRank int     `json:"lexical_rank,omitempty"`
	Lexical     float32 `json:"lexical,omitempty"` // BM25
	// LexicalShare is Lexical over the most that any chunk could have for this
	// question, 0 to 1: how much of the question's words the chunk holds.
	LexicalShare float32 `json:"lexical_share,omitempty"`
	// Named: the chunk holds, whole, a rare identifier of the question.
	Named bool `json:"named,omitempty"`
	// DensePart and LexicalPart are the two scores on the common scale of the
	// fusion; Fused is made of them.
	DensePart    float32 `json:"dense_part,omitempty"`
	LexicalPart  float32 `json:"lexical_part,omitempty"`
	Fused        float32 `json:"fused"`
	Sentence     float32 `json:"sentence,omitempty"` // best sentence cosine
	SentenceBest int     `json:"-"`                  // its index in Chunk.Sentences
	// Late is the late interaction of question and chunk, where it was asked for: the
	// mean over the question's tokens of the best cosine to a token of the chunk, about
	// the mean of the candidates. Only within one question it means anything.
	Late float32 `json:"late,omitempty"`
	// Rerank orders the hits; of one that the reranker did not score it is Fused.
	Rerank     float32 `json:"rerank"`
	RerankRank int     `json:"rerank_rank,omitempty"`
	// RerankCut is how many tokens at the chunk's end the reranker could not read.
	RerankCut int `json:"rerank_cut,omitempty"`
}

// Hit is a candidate chunk.
type Hit struct {
	Chunk    ingest.Chunk
	Document Document
	// Vector is the chunk's embedding and SentenceVectors those of its sentences
	// (nil when not stored).
	Vector          []float32
	SentenceVectors [][]float32
	Scores          Scores
}

// Retriever returns the best hits of a query, best first. Fewer than Limit are
// returned only when fewer match.
type Retriever interface {
	Retrieve(ctx context.Context, q Query) ([]Hit, error)
}

// Embedder encodes a question.
type Embedder interface {
	Model() string
	EmbedQuery(ctx context.Context, text string) (vector []float32, tokens int, err error)
}

// BoundedEmbedder is an Embedder that leaves something out of a question which is far
// too long; Unread is how many tokens.
type BoundedEmbedder interface {
	Embedder
	Unread(text string) int
}

// StateEmbedder is an Embedder that also gives the states of the question's tokens, out
// of the same pass.
type StateEmbedder interface {
	Embedder
	EmbedQueryStates(ctx context.Context, text string) (vector []float32, states States, tokens int, err error)
}
