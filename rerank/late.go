package rerank

import (
	"context"
	"fmt"
	"time"

	"ragd/ingest"
	"ragd/retrieve"
)

// StateSource gives the token states of chunks, dim values each, in one round trip. A
// chunk whose states were not kept is left out.
type StateSource interface {
	TokenStates(ctx context.Context, model string, dim int, chunks []int64) (map[int64]ingest.States, error)
}

// Products makes the dot products of a question's token states with a passage's. It
// sets dst[i·n+j] to scales[i] times the product of row i of values with the
// question's row j of n.
type Products interface {
	Multiply(dst []float32, values []int8, scales []float32) error
}

// Late scores hits by late interaction (ColBERT, Khattab and Zaharia, arXiv
// 2004.12832): for each token of the question the best cosine to a token of the chunk,
// averaged by the tokens' weights (MaxSim). The chunk's states were kept at ingest. It is
// safe for concurrent use.
type Late struct {
	source  StateSource
	prepare func(rows []float32, dim int) (Products, error)
	timeout time.Duration
}

// lateShare is late interaction's part of the dense side's weight. It was chosen on even
// questions (docs/RETRIEVAL.md).
const lateShare = 0.75

// LateConfig is how late interaction is mixed with the fused score.
func LateConfig(c Config) Config {
	c.Share = lateShare
	return c
}

// NewLate makes a Late that spends at most timeout on a question. prepare makes ready
// the products with rows of dim values.
func NewLate(source StateSource, prepare func(rows []float32, dim int) (Products, error), timeout time.Duration) (*Late, error) {
	if timeout <= 0 {
		return nil, fmt.Errorf("rerank: a timeout of %v", timeout)
	}
	return &Late{source: source, prepare: prepare, timeout: timeout}, nil
}

// Name is "late-interaction".
func (*Late) Name() string { return "late-interaction" }

// Score rates the leading hits that time allows. A chunk without states is not rated.
func (l *Late) Score(ctx context.Context, q retrieve.Query, hits []retrieve.Hit) (Rating, error) {
	if len(q.States.Weights) == 0 || len(hits) == 0 {
		return Rating{}, nil
	}
	within, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	dim := len(q.Vector)
	states, err := l.source.TokenStates(within, q.Model, dim, chunkIDs(hits))
	if err != nil && ctx.Err() == nil && within.Err() != nil {
		return Rating{Short: OutOfTime}, nil
	}
	if err != nil {
		return Rating{}, err
	}
	pool := make([]ingest.States, len(hits))
	for i := range hits {
		pool[i] = states[hits[i].Chunk.ID]
	}
	m, err := NewMaxSim(q.States, dim, pool, l.prepare)
	if err != nil {
		return Rating{}, err
	}
	out := Rating{Scores: make([]float32, 0, len(hits))}
	for i := range hits {
		if within.Err() != nil {
			out.Short = OutOfTime
			break
		}
		score, err := m.Score(&pool[i])
		if err != nil {
			return Rating{}, fmt.Errorf("chunk %d: %w", hits[i].Chunk.ID, err)
		}
		if !isNaN(score) {
			hits[i].Scores.Late = score
		}
		out.Scores = append(out.Scores, score)
	}
	return out, ctx.Err()
}

func chunkIDs(hits []retrieve.Hit) []int64 {
	out := make([]int64, len(hits))
	for i := range hits {
		out[i] = hits[i].Chunk.ID
	}
	return out
}
