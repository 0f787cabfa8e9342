package eval

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/retrieve"
)

// SpanSet is a set of long documents and questions whose answers are parts of
// them: the chunking evaluation of Smith and Troynikov (Chroma, 2024).
type SpanSet struct {
	Name      string
	Documents []Document
	Questions []SpanQuery
}

// SpanQuery is answered by parts of one document.
type SpanQuery struct {
	ID, Text string
	Document string
	// References are byte ranges in the document's text, in order, disjoint.
	References []ingest.Span
}

// HoldsSpans says whether a folder looks like a span set.
func HoldsSpans(dir string) bool {
	_, err := folder(dir).find("questions_df.csv*")
	return err == nil
}

// OpenSpans reads questions_df.csv and corpora/NAME.md, which may be packed with
// gzip. ErrSet means that the folder holds no such set.
func OpenSpans(dir string) (*SpanSet, error) {
	f := folder(dir)
	s := &SpanSet{Name: f.name()}
	texts := map[string]string{}
	err := f.read(func(r io.Reader) error {
		rows, err := csv.NewReader(r).ReadAll()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSet, err)
		}
		if len(rows) == 0 || !slices.Equal(rows[0], []string{"question", "references", "corpus_id"}) {
			return fmt.Errorf("%w: the columns are not question, references, corpus_id", ErrSet)
		}
		for i, row := range rows[1:] {
			if _, known := texts[row[2]]; !known {
				if texts[row[2]], err = f.corpus(row[2]); err != nil {
					return err
				}
				s.Documents = append(s.Documents, Document{ID: row[2], Title: row[2], Text: texts[row[2]]})
			}
			refs, err := references(row[1], texts[row[2]])
			if err != nil {
				return fmt.Errorf("%w: question %d: %w", ErrSet, i+1, err)
			}
			s.Questions = append(s.Questions, SpanQuery{ID: fmt.Sprint(i + 1), Text: row[0], Document: row[2], References: refs})
		}
		return nil
	}, "questions_df.csv*")
	if err == nil && len(s.Questions) == 0 {
		err = fmt.Errorf("%w: %s asks nothing", ErrSet, dir)
	}
	return s, err
}

// Shortest is the set of the n shortest documents alone; 0 keeps all.
func (s *SpanSet) Shortest(n int) *SpanSet {
	if n <= 0 || n >= len(s.Documents) {
		return s
	}
	docs := slices.Clone(s.Documents)
	slices.SortStableFunc(docs, func(a, b Document) int { return len(a.Text) - len(b.Text) })
	out := &SpanSet{Name: s.Name, Documents: docs[:n]}
	for _, q := range s.Questions {
		if slices.ContainsFunc(out.Documents, func(d Document) bool { return d.ID == q.Document }) {
			out.Questions = append(out.Questions, q)
		}
	}
	return out
}

// corpus reads a document of a span set; its name must not lead out of the folder.
func (f folder) corpus(name string) (text string, err error) {
	if strings.ContainsAny(name, `/\*?[`) {
		return "", fmt.Errorf("%w: corpus %q", ErrSet, name)
	}
	err = f.read(func(r io.Reader) error {
		b, err := io.ReadAll(r)
		text = string(b)
		return err
	}, "corpora/"+name+".md*")
	return text, err
}

// references turns offsets in characters into byte ranges, and joins those that touch.
func references(raw, text string) ([]ingest.Span, error) {
	var list []struct {
		Start int `json:"start_index"`
		End   int `json:"end_index"`
	}
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return nil, err
	}
	at := make([]int, 0, len(text)+1) // bytes of each character
	for i := range text {
		at = append(at, i)
	}
	at = append(at, len(text))
	var out []ingest.Span
	for _, r := range list {
		if r.Start < 0 || r.Start >= r.End || r.End >= len(at) {
			return nil, fmt.Errorf("reference %d to %d of %d characters", r.Start, r.End, len(at)-1)
		}
		out = append(out, ingest.Span{Start: at[r.Start], End: at[r.End]})
	}
	if len(out) == 0 {
		return nil, errors.New("no reference")
	}
	return union(out), nil
}

// SpanConfig says how documents are cut and how much of them is shown.
type SpanConfig struct {
	Pipelines []string
	Chunks    []chunk.Config
	// Budgets are token budgets of the evidence, in tokens of the answer model
	// (Parts.Context.Count).
	Budgets  []int
	Every    int
	Progress func(what string, done, of int)
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
		s.vectors, s.embedding, err = s.embed(ctx, asked.Queries)
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
