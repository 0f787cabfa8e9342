package eval

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/rerank"
	"ragd/retrieve"
	"ragd/retrieve/lexical"
)

// Pipelines, from the parts to the whole.
const (
	Lexical = "lexical"
	Dense   = "dense"
	Fused   = "fused"
	Default = "default" // fused and reranked, as a question is answered
	Late    = "late"    // fused and reranked by late interaction
)

// Pipelines lists those that are run where nobody names any.
var Pipelines = []string{Lexical, Dense, Fused, Default}

// AllPipelines lists them all. Late needs the states of all tokens, some 100 KB a chunk.
var AllPipelines = append(slices.Clone(Pipelines), Late)

// Embedder encodes both documents and questions.
type Embedder interface {
	ingest.Embedder
	retrieve.Embedder
}

// Parts are the stages under measurement.
type Parts struct {
	Embedder Embedder
	Store    ingest.Store
	Words    interface {
		Search(ctx context.Context, q retrieve.Query) (*lexical.Matches, error)
	}
	Dense, Fused retrieve.Retriever
	Reranker     *rerank.Reranker
	// Late reranks by late interaction; States says that Reranker does so too.
	Late   *rerank.Reranker
	States bool
	// Reranked is how many leading hits are reranked.
	Reranked int
	Inside   Inside
	// Context is what of a ranking reaches the prompt.
	Context Context
	// Asker answers questions; nil where only searches are measured.
	Asker Asker
}

// Config says what is run.
type Config struct {
	Pipelines []string
	// PassageTokens is where passages are cut for the embedding model.
	PassageTokens int
	// NoTextSearch leaves out what Grow compares the words with, ts_rank_cd: of a million
	// chunks it takes longer than all else together.
	NoTextSearch bool
	// AnswerMode is how Answer has its questions answered.
	AnswerMode string
	// Progress is told how far the ingest and the questions are; may be nil.
	Progress func(what string, done, of int)
}

// MS are mean milliseconds a question.
type MS struct {
	Embed   float64 `json:"embed"`
	Dense   float64 `json:"dense"`
	Lexical float64 `json:"lexical"`
	Fuse    float64 `json:"fuse"`
	Rerank  float64 `json:"rerank"`
}

// Row is what one pipeline reached.
type Row struct {
	Pipeline string `json:"pipeline"`
	Queries  int    `json:"queries"`
	Metrics
	// Intervals are the 95 % bootstrap intervals of the means, by metric.
	Intervals map[string][2]float64 `json:"intervals"`
	// ContextTokens is the mean number of tokens that the ranking puts into the prompt.
	ContextTokens float64 `json:"context_tokens"`
	MS            MS      `json:"ms"`
	// PerQuery has a score a question, in the order of the set.
	PerQuery []Score `json:"per_query"`
}

// Score is what one pipeline reached on one question.
type Score struct {
	ID string `json:"id"`
	Metrics
	ContextTokens int `json:"context_tokens"`
}

// Result is one set's table.
type Result struct {
	Set       string `json:"set"`
	Documents int    `json:"documents"`
	Rows      []Row  `json:"rows"`
	// Steps says what each pipeline adds to the one before.
	Steps []Difference `json:"steps,omitempty"`
	// Answers is there when questions were answered too.
	Answers *Answers `json:"answers,omitempty"`
	// Spans is there for a set whose answers are parts of long documents.
	Spans []SpanRow `json:"spans,omitempty"`
	// Evidence is there when questions of another set were asked too.
	Evidence *Evidence `json:"evidence,omitempty"`
	// Growth is there when searches were timed instead.
	Growth []Growth `json:"growth,omitempty"`
}

// runner holds what the pipelines share.
type runner struct {
	Parts
	cfg        Config
	set        *Set
	collection string
	paths      map[int64]string
	vectors    [][]float32
	states     []retrieve.States
	embedding  time.Duration // mean
}

// Run ingests the set, unless it was before, and asks every question.
func Run(ctx context.Context, set *Set, p Parts, cfg Config) (*Result, error) {
	r, err := newRunner(ctx, set, p, cfg)
	if err != nil {
		return nil, err
	}
	out := &Result{Set: set.Name, Documents: len(set.Documents)}
	for _, name := range cfg.Pipelines {
		row, err := r.pipeline(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", set.Name, name, err)
		}
		out.Rows = append(out.Rows, row)
	}
	out.Steps = steps(out.Rows)
	return out, nil
}

func newRunner(ctx context.Context, set *Set, p Parts, cfg Config) (*runner, error) {
	set, err := set.judged()
	if err != nil {
		return nil, err
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string, int, int) {}
	}
	r := &runner{Parts: p, cfg: cfg, set: set}
	if err := r.ingest(ctx); err != nil {
		return nil, fmt.Errorf("ingest %s: %w", set.Name, err)
	}
	if r.paths, err = r.Inside.paths(ctx, r.collection); err != nil {
		return nil, err
	}
	if r.needsVectors() {
		err = r.embed(ctx, set.Queries)
	}
	return r, err
}

func (r *runner) needsVectors() bool {
	return slices.ContainsFunc(r.cfg.Pipelines, func(p string) bool { return p != Lexical })
}

func (r *runner) needsStates() bool {
	return slices.Contains(r.cfg.Pipelines, Late) || r.States && slices.Contains(r.cfg.Pipelines, Default)
}

// ingest stores the corpus in a collection that is named by its content.
func (r *runner) ingest(ctx context.Context) error {
	docs := newPassages(r.set.Documents)
	var embedder ingest.Embedder = noModel{}
	r.collection = "eval/" + docs.hash() + "/words"
	if r.needsVectors() {
		most := min(r.cfg.PassageTokens, r.Embedder.MaxTokens())
		embedder = cutEmbedder{r.Embedder, most}
		r.collection = fmt.Sprintf("eval/%s/%d", docs.hash(), most)
	}
	if r.needsStates() {
		embedder = cutStateEmbedder{embedder.(cutEmbedder)}
		r.collection += "/states"
	}
	cutter, err := chunk.New(embedder, chunk.Config{Target: min(embedder.MaxTokens(), 4096), Max: min(embedder.MaxTokens(), 4096)})
	if err != nil {
		return err
	}
	return r.road(ctx, docs, wholeChunker{cutter, embedder}, embedder)
}

// road runs the document road into the collection.
func (r *runner) road(ctx context.Context, docs *passages, cutter ingest.Chunker, embedder ingest.Embedder) error {
	cfg := ingest.DefaultConfig(r.collection)
	if !r.needsVectors() {
		cfg.Sentences = ingest.SentencesOff
	}
	cfg.States = r.needsStates()
	road, err := ingest.New(docs, cutter, embedder, r.Store, cfg, func(p ingest.Progress) {
		r.cfg.Progress("ingest", p.Documents, p.Total)
	})
	if err != nil {
		return err
	}
	report, err := road.Run(ctx, nil)
	if err != nil {
		return err
	}
	for _, f := range report.Files {
		if f.Status == ingest.Failed {
			return fmt.Errorf("document %s: %s", f.Path, f.Reason)
		}
	}
	return nil
}

// embed encodes questions one after the other, with the states of their tokens where
// they are read.
func (r *runner) embed(ctx context.Context, list []Query) (err error) {
	r.vectors, r.states = make([][]float32, len(list)), make([]retrieve.States, len(list))
	with, _ := r.Embedder.(retrieve.StateEmbedder)
	start := time.Now()
	for i, q := range list {
		if r.needsStates() && with != nil {
			r.vectors[i], r.states[i], _, err = with.EmbedQueryStates(ctx, q.Text)
		} else {
			r.vectors[i], _, err = r.Embedder.EmbedQuery(ctx, q.Text)
		}
		if err != nil {
			return fmt.Errorf("question %s: %w", q.ID, err)
		}
		r.cfg.Progress("embed", i+1, len(list))
	}
	r.embedding = time.Since(start) / time.Duration(max(len(list), 1))
	return nil
}

// pipeline asks every question in one way.
func (r *runner) pipeline(ctx context.Context, name string) (Row, error) {
	row := Row{Pipeline: name, Queries: len(r.set.Queries)}
	var spent stopwatch
	sizes := r.Context.sizes(r.set.Documents)
	for i, q := range r.set.Queries {
		found, err := r.ask(ctx, name, r.query(i, &spent), &spent)
		if err != nil {
			return row, fmt.Errorf("question %s: %w", q.ID, err)
		}
		ranking := make([]string, len(found.hits))
		for k, h := range found.hits {
			ranking[k] = r.paths[h.Chunk.ID]
		}
		row.PerQuery = append(row.PerQuery, Score{q.ID, measure(q, ranking), sizes.fill(ranking[:found.worth])})
		r.cfg.Progress(name, i+1, len(r.set.Queries))
	}
	row.sum()
	row.MS = spent.means(row.Queries)
	if name != Lexical {
		row.MS.Embed = milliseconds(r.embedding)
	}
	return row, nil
}

func (r *runner) query(i int, spent *stopwatch) retrieve.Query {
	q := retrieve.Query{
		Text: r.set.Queries[i].Text, Collections: []string{r.collection}, Limit: depth + len(r.set.Queries[i].Ignored),
		Observe: spent.observe,
	}
	if r.vectors != nil {
		q.Vector, q.Model, q.States = r.vectors[i], r.Embedder.Model(), r.states[i]
	}
	return q
}

// found is a ranking. The leading worth of its hits may be shown; what the
// reranker would drop comes behind them.
type found struct {
	hits  []retrieve.Hit
	worth int
}

func all(hits []retrieve.Hit, err error) (found, error) { return found{hits, len(hits)}, err }

func (r *runner) ask(ctx context.Context, name string, q retrieve.Query, spent *stopwatch) (found, error) {
	switch name {
	case Lexical:
		return all(r.words(ctx, q))
	case Dense:
		ctx, end := q.Begin(ctx, retrieve.Dense)
		hits, err := r.Dense.Retrieve(ctx, q)
		end(err)
		return all(hits, err)
	case Fused:
		return all(r.Fused.Retrieve(ctx, q))
	case Default, Late:
		hits, err := r.Fused.Retrieve(ctx, q)
		if err != nil {
			return found{}, err
		}
		by := r.Reranker
		if name == Late {
			by = r.Late
		}
		return r.rerank(ctx, q, by, hits, spent)
	}
	return found{}, fmt.Errorf("pipeline %q is not one of %v", name, AllPipelines)
}

func (r *runner) words(ctx context.Context, q retrieve.Query) ([]retrieve.Hit, error) {
	ctx, end := q.Begin(ctx, retrieve.Lexical)
	m, err := r.Words.Search(ctx, q)
	if err != nil {
		end(err)
		return nil, err
	}
	top := m.Top(q.Limit)
	end(nil)
	hits := make([]retrieve.Hit, len(top))
	for i, match := range top {
		hits[i].Chunk.ID = match.Chunk
		hits[i].Scores.Lexical = match.Score
	}
	return hits, nil
}

// rerank orders the leading hits anew. What it would drop comes behind what it
// keeps, and the rest behind both, so that recall stays comparable.
func (r *runner) rerank(ctx context.Context, q retrieve.Query, by *rerank.Reranker, hits []retrieve.Hit, spent *stopwatch) (found, error) {
	n := min(r.Reranked, len(hits))
	start := time.Now()
	ranking, err := by.Rerank(ctx, q, hits[:n])
	spent.add("rerank", time.Since(start))
	if err != nil {
		return found{}, err
	}
	kept := ranking.Kept
	for _, d := range ranking.Drops {
		kept = append(kept, d.Hit)
	}
	return found{append(kept, hits[n:]...), len(ranking.Kept)}, nil
}

// stopwatch sums the time of parts that may run side by side.
type stopwatch struct {
	mu  sync.Mutex
	sum map[retrieve.Part]time.Duration
}

func (s *stopwatch) observe(ctx context.Context, p retrieve.Part) (context.Context, func(error)) {
	start := time.Now()
	return ctx, func(error) { s.add(p, time.Since(start)) }
}

func (s *stopwatch) add(p retrieve.Part, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sum == nil {
		s.sum = map[retrieve.Part]time.Duration{}
	}
	s.sum[p] += d
}

func (s *stopwatch) means(n int) MS {
	of := func(p retrieve.Part) float64 { return milliseconds(s.sum[p] / time.Duration(max(n, 1))) }
	return MS{Dense: of(retrieve.Dense), Lexical: of(retrieve.Lexical), Fuse: of(retrieve.Fuse), Rerank: of("rerank")}
}

// sum fills the means and intervals of a row from its scores.
func (row *Row) sum() {
	list := make([]Metrics, len(row.PerQuery))
	tokens := 0
	for i, s := range row.PerQuery {
		list[i] = s.Metrics
		tokens += s.ContextTokens
	}
	row.Metrics = mean(list)
	row.ContextTokens = float64(tokens) / float64(max(len(list), 1))
	row.Intervals = map[string][2]float64{}
	for _, m := range metricNames {
		row.Intervals[m.name] = interval(column(list, m.of))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
