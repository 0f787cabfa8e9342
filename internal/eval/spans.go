package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/retrieve"
)

// SpanConfig says how documents are cut and how much of them is shown.
type SpanConfig struct {
	Pipelines []string
	Chunks    []chunk.Config
	// Budgets are token budgets of the evidence, in tokens of the answer model
	// (Parts.Context.Count), or, where EmbedderTokens says so, of the embedding model: one
	// that speaks the documents' language stands for any answer model that does.
	Budgets        []int
	EmbedderTokens bool
	Every          int
	Progress       func(what string, done, of int)
}

// SpanRow is what one way of cutting and searching brings into a budget.
type SpanRow struct {
	Chunk    int    `json:"chunk_tokens"`
	Overlap  int    `json:"overlap_tokens"`
	Chunks   int    `json:"chunks"`
	Pipeline string `json:"pipeline"`
	Budget   int    `json:"budget_tokens"`
	Queries  int    `json:"queries"`
	// Recall is the share of the reference's bytes that were shown, Precision the
	// share of the bytes shown that are reference, IoU the reference's bytes shown
	// over all that are reference or shown; means over questions. A byte that is
	// shown twice counts twice as shown, once as found.
	Recall         float64    `json:"recall"`
	RecallInterval [2]float64 `json:"recall_interval"`
	Precision      float64    `json:"precision"`
	IoU            float64    `json:"iou"`
	// Tokens is the mean number of tokens shown.
	Tokens float64 `json:"tokens"`
	// PerQuery is the recall of each question.
	PerQuery []float64 `json:"per_query"`
}

// Spans cuts the documents in each way, asks every question and measures how much
// of its reference fits into each budget.
func Spans(ctx context.Context, set *SpanSet, p Parts, cfg SpanConfig) ([]SpanRow, error) {
	if cfg.EmbedderTokens {
		empty := p.Embedder.CountPassage("")
		p.Context.Count = func(text string) int { return p.Embedder.CountPassage(text) - empty }
	}
	if p.Context.Count == nil {
		return nil, errors.New("spans: nobody counts tokens")
	}
	var out []SpanRow
	for _, cut := range cfg.Chunks {
		s, err := newSpanner(ctx, set, p, cfg, cut)
		if err != nil {
			return nil, fmt.Errorf("chunks of %d+%d tokens: %w", cut.Target, cut.Overlap, err)
		}
		for _, name := range cfg.Pipelines {
			rows, err := s.pipeline(ctx, name)
			if err != nil {
				return nil, fmt.Errorf("chunks of %d+%d tokens, %s: %w", cut.Target, cut.Overlap, name, err)
			}
			out = append(out, rows...)
		}
	}
	return out, nil
}

// spanner searches one way of cutting.
type spanner struct {
	*runner
	spans  *SpanSet
	cfg    SpanConfig
	cut    chunk.Config
	chunks map[int64]shown
}

// shown is a chunk with what it costs.
type shown struct {
	document string
	span     ingest.Span
	tokens   int
}

func newSpanner(ctx context.Context, set *SpanSet, p Parts, cfg SpanConfig, cut chunk.Config) (*spanner, error) {
	asked := &Set{Name: set.Name, Documents: set.Documents}
	for i, q := range set.Questions {
		if i%max(cfg.Every, 1) == 0 {
			asked.Queries = append(asked.Queries, Query{ID: q.ID, Text: q.Text})
		}
	}
	r := &runner{Parts: p, set: asked, cfg: Config{Pipelines: cfg.Pipelines, Progress: cfg.Progress}}
	if r.cfg.Progress == nil {
		r.cfg.Progress = func(string, int, int) {}
	}
	s := &spanner{runner: r, spans: set, cfg: cfg, cut: cut}
	if err := s.store(ctx); err != nil {
		return nil, err
	}
	var err error
	if s.chunks, err = s.Inside.places(ctx, s.collection, p.Context.Count); err != nil {
		return nil, err
	}
	if s.needsVectors() {
		err = s.embed(ctx, asked.Queries)
	}
	return s, err
}

// store ingests the documents, cut in this way, into a collection of its own.
func (s *spanner) store(ctx context.Context) error {
	docs := newPassages(s.set.Documents)
	docs.markdown = true
	cutter, err := chunk.New(s.Embedder, s.cut)
	if err != nil {
		return err
	}
	var embedder ingest.Embedder = s.Embedder
	kind := "spans"
	if !s.needsVectors() {
		embedder, kind = noModel{counter: s.Embedder}, "spans/words"
	}
	s.collection = fmt.Sprintf("eval/%s/%s/%d+%d", docs.hash(), kind, s.cut.Target, s.cut.Overlap)
	if s.needsStates() {
		s.collection += "/states"
	}
	return s.road(ctx, docs, cutter, embedder)
}

func (s *spanner) pipeline(ctx context.Context, name string) ([]SpanRow, error) {
	rows := make([]SpanRow, len(s.cfg.Budgets))
	for i, b := range s.cfg.Budgets {
		rows[i] = SpanRow{Chunk: s.cut.Target, Overlap: s.cut.Overlap, Chunks: len(s.chunks), Pipeline: name, Budget: b, Queries: len(s.set.Queries)}
	}
	var spent stopwatch
	for i, q := range s.set.Queries {
		found, err := s.ask(ctx, name, s.query(i, &spent), &spent)
		if err != nil {
			return nil, fmt.Errorf("question %s: %w", q.ID, err)
		}
		asked := s.spans.Questions[i*max(s.cfg.Every, 1)]
		for k := range rows {
			rows[k].add(asked, s.fill(found.hits, rows[k].Budget))
		}
		s.cfg.report(name, i+1, len(s.set.Queries))
	}
	for k := range rows {
		rows[k].finish()
	}
	return rows, nil
}

func (c SpanConfig) report(what string, done, of int) {
	if c.Progress != nil {
		c.Progress(what, done, of)
	}
}

// fill takes chunks in their order while they fit; one that is too long for what
// is left is passed over.
func (s *spanner) fill(hits []retrieve.Hit, budget int) (out []shown) {
	for _, h := range hits {
		c := s.chunks[h.Chunk.ID]
		if c.tokens <= budget {
			budget -= c.tokens
			out = append(out, c)
		}
	}
	return out
}

// add counts one question.
func (row *SpanRow) add(q SpanQuery, list []shown) {
	var own []ingest.Span
	sent := 0
	for _, c := range list {
		sent += c.span.End - c.span.Start
		row.Tokens += float64(c.tokens)
		if c.document == q.Document {
			own = append(own, c.span)
		}
	}
	found, want := 0, 0
	for _, ref := range q.References {
		want += ref.End - ref.Start
		for _, c := range union(own) {
			found += max(0, min(ref.End, c.End)-max(ref.Start, c.Start))
		}
	}
	row.PerQuery = append(row.PerQuery, float64(found)/float64(want))
	row.Precision += float64(found) / float64(max(sent, 1))
	row.IoU += float64(found) / float64(sent+want-found)
}

func (row *SpanRow) finish() {
	n := float64(max(row.Queries, 1))
	row.Recall, row.RecallInterval = average(row.PerQuery), interval(row.PerQuery)
	row.Precision, row.IoU, row.Tokens = row.Precision/n, row.IoU/n, row.Tokens/n
}

// union joins ranges that overlap or touch, in order.
func union(list []ingest.Span) []ingest.Span {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b ingest.Span) int { return a.Start - b.Start })
	var out []ingest.Span
	for _, s := range list {
		if last := len(out) - 1; last >= 0 && s.Start <= out[last].End {
			out[last].End = max(out[last].End, s.End)
		} else {
			out = append(out, s)
		}
	}
	return out
}
