package app

import (
	"context"

	"ragd/inference/cpu"
	"ragd/inference/encode"
	"ragd/ingest"
	"ragd/internal/config"
	"ragd/rerank"
	"ragd/retrieve"
)

var (
	_ ingest.StateEmbedder   = (*embedder)(nil)
	_ retrieve.StateEmbedder = lateEmbedder{}
	_ rerank.Products        = (*cpu.RowProducts)(nil)
)

// keepsStates says whether ingest keeps token states: where late interaction reads them.
func (a *App) keepsStates() bool { return a.cfg.Rerank.Scorer == config.ScoreLate }

// openLate makes the reranker that reads token states.
func (a *App) openLate() (*rerank.Reranker, error) {
	late, err := rerank.NewLate(a.store, rowProducts, a.cfg.Rerank.Timeout)
	if err != nil {
		return nil, err
	}
	return rerank.New(late, rerank.LateConfig(a.rerankConfig()))
}

func rowProducts(rows []float32, dim int) (rerank.Products, error) {
	return cpu.NewRowProducts(nil, rows, dim)
}

// questionEmbedder is the embedder of the question road; the states of a question's tokens
// come only where they are read.
func (a *App) questionEmbedder() retrieve.Embedder {
	if a.keepsStates() {
		return lateEmbedder{a.embed}
	}
	return a.embed
}

// lateEmbedder is the encoder with the states of a question's tokens.
type lateEmbedder struct{ *embedder }

// EmbedQueryStates encodes a question as EmbedQuery does; the states of one that is
// longer than the model takes are those of its parts.
func (e lateEmbedder) EmbedQueryStates(ctx context.Context, text string) (vector []float32, states retrieve.States, tokens int, err error) {
	parts, _ := e.read(text)
	return e.partStates(ctx, parts)
}

func (e lateEmbedder) partStates(ctx context.Context, parts []string) (vector []float32, states retrieve.States, tokens int, err error) {
	vector, tokens, err = e.embedParts(parts, func(part string) ([]float32, int, error) {
		v, s, n, err := e.Encoder.EmbedQueryStates(ctx, part)
		states.Rows, states.Weights = append(states.Rows, s.Rows...), append(states.Weights, s.Weights...)
		return v, n, err
	})
	return vector, states, tokens, err
}

// EmbedPassageStates implements ingest.StateEmbedder; the first text that cannot be
// encoded is the error.
func (e *embedder) EmbedPassageStates(ctx context.Context, texts []string, wanted []bool, limit int) ([]ingest.Embedding, error) {
	return passages(e.Encoder.EmbedPassageStates(ctx, texts, wanted, limit))
}

func passages(list []encode.Embedding, err error) ([]ingest.Embedding, error) {
	if err != nil {
		return nil, err
	}
	out := make([]ingest.Embedding, len(list))
	for i, v := range list {
		if v.Err != nil {
			return nil, v.Err
		}
		out[i] = ingest.Embedding{Vector: v.Vector, Tokens: v.Tokens}
		if v.States != nil {
			out[i].States = &ingest.States{Scales: v.States.Scales, Values: v.States.Values}
		}
	}
	return out, nil
}
