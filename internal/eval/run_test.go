package eval_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/ingest/ingesttest"
	"ragd/ingest/store"
	"ragd/internal/eval"
	"ragd/internal/testenv"
	"ragd/rerank"
	"ragd/retrieve/hybrid"
	"ragd/retrieve/lexical"
	"ragd/retrieve/vector"
)

// embedder encodes questions like passages and counts the passages.
type embedder struct {
	*ingesttest.FakeEmbedder
	passages int
}

func (e *embedder) EmbedPassages(ctx context.Context, texts []string) ([]ingest.Embedding, error) {
	e.passages += len(texts)
	return e.FakeEmbedder.EmbedPassages(ctx, texts)
}

func (e *embedder) EmbedQuery(ctx context.Context, text string) ([]float32, int, error) {
	out, err := e.FakeEmbedder.EmbedPassages(ctx, []string{text})
	if err != nil {
		return nil, 0, err
	}
	return out[0].Vector, out[0].Tokens, nil
}

func parts(t *testing.T, pool *pgxpool.Pool, e *embedder) eval.Parts {
	t.Helper()
	dense, words := vector.New(pool, "default", vector.Config{}), lexical.New(pool, "default", lexical.Analyzer{})
	fused, err := hybrid.New(pool, dense, words, hybrid.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	reranker, err := rerank.New(rerank.BestSentence{}, rerank.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return eval.Parts{
		Embedder: e, Store: store.New(pool, "default", lexical.Analyzer{}), Words: words, Dense: dense, Fused: fused,
		Reranker: reranker, Reranked: 20, Inside: eval.Inside{Pool: pool, Tenant: "default"},
		Context: eval.Context{Count: func(s string) int { return len(strings.Fields(s)) }, Tokens: 100, Chunks: 3},
	}
}

// fleet is a set of documents about numbered ships, each with one question.
func fleet(name string, n int) *eval.Set {
	s := &eval.Set{Name: name}
	for i := range n {
		id := fmt.Sprintf("%s%d", name, i)
		s.Documents = append(s.Documents, eval.Document{
			ID: id, Title: "Ship " + id, Text: fmt.Sprintf("The %s ship carries cargo%d. It was built long ago. %s", name, i, strings.Repeat("It sails. ", i)),
		})
		s.Queries = append(s.Queries, eval.Query{ID: id, Text: fmt.Sprintf("which %s ship carries cargo%d", name, i), Gain: map[string]float64{id: 1}, Group: i})
	}
	return s
}

func TestRun(t *testing.T) {
	e := &embedder{FakeEmbedder: &ingesttest.FakeEmbedder{}}
	p := parts(t, testenv.Database(t), e)
	cfg := eval.Config{Pipelines: eval.Pipelines, PassageTokens: 40}
	res, err := eval.Run(t.Context(), fleet("north", 12), p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Rows) != len(eval.Pipelines) || res.Documents != 12 {
		t.Fatalf("%+v", res)
	}
	for _, row := range res.Rows {
		if in := row.Intervals["ndcg@10"]; row.Queries != 12 || row.Recall100 != 1 || in[0] > row.NDCG10 || in[1] < row.NDCG10 {
			t.Errorf("%+v", row)
		}
		if len(row.PerQuery) != 12 || row.PerQuery[3].ID != "north3" || row.ContextTokens <= 0 || row.ContextTokens > 100 {
			t.Errorf("%s: %d scores, %g tokens of context", row.Pipeline, len(row.PerQuery), row.ContextTokens)
		}
		if (row.Pipeline == eval.Lexical || row.Pipeline == eval.Fused) && row.MRR10 != 1 {
			t.Errorf("%s: a word that only one document holds is not found first: %+v", row.Pipeline, row.Metrics)
		}
		if row.Pipeline != eval.Lexical && row.MS.Dense <= 0 || row.Pipeline != eval.Dense && row.MS.Lexical <= 0 {
			t.Errorf("%s: no time for what was searched: %+v", row.Pipeline, row.MS)
		}
	}
	if len(res.Steps) != 3 || res.Steps[2].Pipeline != "fused → default" || res.Steps[2].Queries != 12 {
		t.Errorf("steps %+v", res.Steps)
	}
	before := e.passages
	if _, err := eval.Run(t.Context(), fleet("north", 12), p, cfg); err != nil || e.passages != before {
		t.Errorf("the second run encoded %d passages (%v)", e.passages-before, err)
	}
}

// The answers are put to the collection that holds the documents, and those of a
// foreign set's questions ought to be refusals.
func TestAnswer(t *testing.T) {
	e := &embedder{FakeEmbedder: &ingesttest.FakeEmbedder{}}
	p := parts(t, testenv.Database(t), e)
	var asked []eval.Question
	p.Asker = askerFunc(func(q eval.Question) (eval.Reply, error) {
		asked = append(asked, q)
		if strings.Contains(q.Text, "south") {
			return eval.Reply{Text: "no evidence", Refused: true}, nil
		}
		return eval.Reply{Text: "cargo1 [1]", Cited: []string{"north1"}, InputTokens: 10}, nil
	})
	set := fleet("north", 6)
	for i := range set.Queries {
		set.Queries[i].Answers = []string{fmt.Sprint("cargo", i)}
	}
	got, err := eval.Answer(t.Context(), set.With(fleet("south", 6)), p, eval.Config{PassageTokens: 40}, 8)
	if err != nil {
		t.Fatal(err)
	}
	if got.Questions != 8 || *got.RefusalAccuracy != 1 || *got.Answered != 1 || *got.EM != 0.25 || *got.CitationRecall != 0.25 || *got.CitationPrecision != 0.25 {
		t.Errorf("%+v", got)
	}
	if !strings.HasPrefix(asked[0].Collection, "eval/") || e.passages == 0 {
		t.Errorf("asked of %q after %d passages", asked[0].Collection, e.passages)
	}
}

type askerFunc func(eval.Question) (eval.Reply, error)

func (f askerFunc) Ask(_ context.Context, q eval.Question) (eval.Reply, error) { return f(q) }

// A question of a document's own words finds its bytes, whatever the cut, and a
// larger budget shows no less.
func TestSpans(t *testing.T) {
	e := &embedder{FakeEmbedder: &ingesttest.FakeEmbedder{}}
	p := parts(t, testenv.Database(t), e)
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "Ship number%d carries cargo%d over the sea.\n\n", i, i)
	}
	at := strings.Index(text.String(), "Ship number30 ")
	set := &eval.SpanSet{
		Name: "ships", Documents: []eval.Document{{ID: "d", Text: text.String()}},
		Questions: []eval.SpanQuery{{ID: "1", Text: "what does number30 carry, cargo30?", Document: "d", References: []ingest.Span{{Start: at, End: at + 40}}}},
	}
	for _, pipelines := range [][]string{{eval.Lexical}, {eval.Lexical, eval.Default}} {
		rows, err := eval.Spans(t.Context(), set, p, eval.SpanConfig{
			Pipelines: pipelines, Budgets: []int{60, 400}, Chunks: []chunk.Config{{Target: 32, Max: 64}, {Target: 48, Max: 64, Overlap: 16}},
		})
		if err != nil || len(rows) != 4*len(pipelines) {
			t.Fatalf("%d rows: %v", len(rows), err)
		}
		for i, r := range rows {
			if r.Pipeline == eval.Lexical && r.Recall != 1 || r.Tokens > float64(r.Budget) || r.Chunks < 10 {
				t.Errorf("%+v", r)
			}
			if r.Budget == 400 && (r.Recall < rows[i-1].Recall || r.Precision > rows[i-1].Precision) {
				t.Errorf("a larger budget shows less: %+v after %+v", r, rows[i-1])
			}
		}
	}
}

func TestUnknownPipeline(t *testing.T) {
	p := parts(t, testenv.Database(t), &embedder{FakeEmbedder: &ingesttest.FakeEmbedder{}})
	if _, err := eval.Run(t.Context(), fleet("north", 3), p, eval.Config{Pipelines: []string{"guess"}, PassageTokens: 40}); err == nil || !strings.Contains(err.Error(), "guess") {
		t.Errorf("%v", err)
	}
}

// The bounds part the questions of the corpus from those of another.
func TestCalibrate(t *testing.T) {
	p := parts(t, testenv.Database(t), &embedder{FakeEmbedder: &ingesttest.FakeEmbedder{}})
	ev, err := eval.Calibrate(t.Context(), fleet("north", 8), fleet("south", 8), p, eval.Config{PassageTokens: 64})
	if err != nil {
		t.Fatal(err)
	}
	if ev.Strangers != "south" || len(ev.Bounds) == 0 {
		t.Fatalf("%+v", ev)
	}
	for i, b := range ev.Bounds[1:] {
		if w := ev.Bounds[i]; b.Answered > w.Answered || b.Refused < w.Refused {
			t.Errorf("a higher bound answers more: %+v after %+v", b, w)
		}
	}
	if median := 3; ev.Own.Words[median] <= ev.Foreign.Words[median] {
		t.Errorf("own questions share no more words: %v, %v", ev.Own.Words, ev.Foreign.Words)
	}
}

func TestGrow(t *testing.T) {
	p := parts(t, testenv.Database(t), &embedder{FakeEmbedder: &ingesttest.FakeEmbedder{}})
	for _, pipelines := range [][]string{{eval.Lexical}, {eval.Dense, eval.Fused}} {
		g, err := eval.Grow(t.Context(), fleet("north", 8), p, eval.Config{Pipelines: pipelines, PassageTokens: 64}, 600)
		if err != nil {
			t.Fatal(err)
		}
		if g.Chunks != 600 || g.Index.Segments < 1 || g.Index.Bytes <= 0 || g.Index.Disk < g.Index.Bytes || g.PutMS <= 0 || len(g.Rows) != len(pipelines)+1 {
			t.Errorf("%+v", g)
		}
		if last := g.Rows[len(pipelines)]; last.Pipeline != eval.TextSearch || g.TextSearch.Disk <= 0 || g.TextSearch.IngestMS <= 0 {
			t.Errorf("%+v, %+v", last, g.TextSearch)
		}
		if dense := slices.Contains(pipelines, eval.Dense); dense != (g.Recall != nil) || dense && *g.Recall != 1 {
			t.Errorf("recall %v of a search that compares all", g.Recall)
		}
		matching := map[string]int64{"50 %": 300, "1 %": 10, "0.01 %": 10, "1 chunk": 1}
		for _, f := range g.Filtered {
			if f.Matching != matching[f.Keeps] || !f.Exact || !strings.Contains(f.Plan, "Scan") {
				t.Errorf("%+v", f)
			}
			delete(matching, f.Keeps)
		}
		if (len(g.Filtered) > 0) != slices.Contains(pipelines, eval.Fused) || (len(g.Filtered) > 0 && len(matching) > 0) {
			t.Errorf("%d filters were tried, not %v", len(g.Filtered), matching)
		}
		for _, r := range g.Rows {
			if r.P50 <= 0 || r.P95 < r.P50 || r.Questions != 200 {
				t.Errorf("%+v", r)
			}
		}
	}
}
