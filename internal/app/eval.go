package app

import (
	"context"

	"ragd/internal/eval"
	"ragd/internal/tenant"
	"ragd/retrieve/lexical"
	"ragd/retrieve/vector"
)

// EvalParts are the stages of this program's question road, as they are configured.
func (a *App) EvalParts(ctx context.Context) (eval.Parts, error) {
	fused, err := a.retriever(tenant.Default)
	if err != nil {
		return eval.Parts{}, err
	}
	reranker, err := a.openReranker(ctx)
	if err != nil {
		return eval.Parts{}, err
	}
	return eval.Parts{
		Embedder: a.embed, Store: a.store, Words: lexical.New(a.pool, tenant.Default, lexical.Analyzer{}),
		Dense: vector.New(a.pool, tenant.Default, vector.Config{ExactBelow: a.cfg.Retrieve.ExactBelow}),
		Fused: fused, Reranker: reranker, Reranked: a.cfg.Retrieve.TopK, Inside: eval.Inside{Pool: a.pool, Tenant: tenant.Default},
	}, nil
}
