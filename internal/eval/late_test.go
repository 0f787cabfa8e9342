package eval_test

import (
	"context"
	"strings"
	"testing"

	"ragd/ingest"
	"ragd/ingest/ingesttest"
	"ragd/ingest/store"
	"ragd/internal/eval"
	"ragd/internal/testenv"
	"ragd/rerank"
	"ragd/retrieve"
	"ragd/retrieve/lexical"
)

// stater is an embedder of both roads with token states.
type stater struct {
	embedder
	inner ingesttest.StateEmbedder
}

func (s *stater) EmbedPassageStates(ctx context.Context, texts []string, wanted []bool, limit int) ([]ingest.Embedding, error) {
	return s.inner.EmbedPassageStates(ctx, texts, wanted, limit)
}

func (s *stater) EmbedQueryStates(ctx context.Context, text string) ([]float32, retrieve.States, int, error) {
	v, n, err := s.EmbedQuery(ctx, text)
	var q retrieve.States
	for _, x := range ingesttest.StatesOf(text, 1000).Values {
		q.Rows = append(q.Rows, float32(x))
	}
	for range strings.Fields(text) {
		q.Weights = append(q.Weights, 1)
	}
	return v, q, n, err
}

// dots are plain products.
type dots struct {
	rows []float32
	dim  int
}

func (d dots) Multiply(dst []float32, values []int8, scales []float32) error {
	n := len(d.rows) / d.dim
	for i := range scales {
		for j := range n {
			sum := float32(0)
			for k := range d.dim {
				sum += float32(values[i*d.dim+k]) * d.rows[j*d.dim+k]
			}
			dst[i*n+j] = sum * scales[i]
		}
	}
	return nil
}

// counted tells for how many chunks states were found.
type counted struct {
	rerank.StateSource
	chunks int
}

func (c *counted) TokenStates(ctx context.Context, model string, dim int, chunks []int64) (map[int64]ingest.States, error) {
	out, err := c.StateSource.TokenStates(ctx, model, dim, chunks)
	c.chunks += len(out)
	return out, err
}

// TestRunLate: the pipeline late stores token states in a collection of its own and finds
// by them; others store none.
func TestRunLate(t *testing.T) {
	pool := testenv.Database(t)
	e := &stater{embedder: embedder{FakeEmbedder: &ingesttest.FakeEmbedder{}}}
	p := parts(t, pool, &e.embedder)
	p.Embedder = e
	source := &counted{StateSource: store.New(pool, "default", lexical.Analyzer{})}
	late, err := rerank.NewLate(source, func(rows []float32, dim int) (rerank.Products, error) { return dots{rows, dim}, nil }, 1e12)
	if err != nil {
		t.Fatal(err)
	}
	if p.Late, err = rerank.New(late, rerank.LateConfig(rerank.DefaultConfig())); err != nil {
		t.Fatal(err)
	}
	stored := func() (n int) {
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM ragd.token_states").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := eval.Run(t.Context(), fleet("north", 12), p, eval.Config{Pipelines: eval.Pipelines, PassageTokens: 40}); err != nil || stored() != 0 {
		t.Fatalf("%d states, %v", stored(), err)
	}
	res, err := eval.Run(t.Context(), fleet("north", 12), p, eval.Config{Pipelines: []string{eval.Default, eval.Late}, PassageTokens: 40})
	if err != nil {
		t.Fatal(err)
	}
	if stored() != 12 || int(e.inner.Wanted.Load()) != 12 {
		t.Errorf("%d states kept, %d asked for", stored(), e.inner.Wanted.Load())
	}
	if row := res.Rows[1]; row.Pipeline != eval.Late || row.MRR10 < 0.9 || row.MS.Rerank <= 0 {
		t.Errorf("%s: %+v", row.Pipeline, row.Metrics)
	}
	if source.chunks != 12*12 {
		t.Errorf("states of %d chunks were read for 12 questions with 12 candidates", source.chunks)
	}
	if len(res.Steps) != 1 || res.Steps[0].Pipeline != "default → late" {
		t.Errorf("steps %+v", res.Steps)
	}
	p.States = true // the default reranks by late interaction, too
	if _, err = eval.Run(t.Context(), fleet("south", 3), p, eval.Config{Pipelines: []string{eval.Default}, PassageTokens: 40}); err != nil || stored() != 15 {
		t.Errorf("%d states, %v", stored(), err)
	}
}
