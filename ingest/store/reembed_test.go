package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest"
	"ragd/ingest/ingesttest"
	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve"
	"ragd/retrieve/lexical"
	"ragd/retrieve/vector"
)

// wide is a model of other dimensions than the one of ingesttest: its vectors are
// those, some values longer.
type wide struct {
	ingesttest.FakeEmbedder
	// before is called before each batch.
	before func()
}

const wideDim = 24

func (w *wide) Dim() int { return wideDim }

func (w *wide) EmbedPassages(ctx context.Context, texts []string) ([]ingest.Embedding, error) {
	if w.before != nil {
		w.before()
	}
	list, err := w.FakeEmbedder.EmbedPassages(ctx, texts)
	for i := range list {
		list[i].Vector = append(slices.Clone(list[i].Vector), make([]float32, wideDim-len(list[i].Vector))...)
	}
	return list, err
}

func newWide() *wide { return &wide{FakeEmbedder: ingesttest.FakeEmbedder{Name: "wide"}} }

// shelf is a collection embedded by the model "fake", and the way to another.
type shelf struct {
	*testing.T
	pool  *pgxpool.Pool
	store *store.Store
}

const oldRecipe = "ingest/2 chunk/1 200+0/512; fake; sentences apart"

func newShelf(t *testing.T, documents int) *shelf {
	pool := testenv.Database(t)
	s := &shelf{T: t, pool: pool, store: store.New(pool, tenant, lexical.Analyzer{})}
	for i := range documents {
		s.put(fmt.Sprintf("doc%03d", i), fmt.Sprintf("rack %d holds pump p%d", i, i), fmt.Sprintf("밸브 %d는 잠겨 있다", i))
	}
	return s
}

// put stores a document as the pipeline with the old model does.
func (s *shelf) put(path string, texts ...string) {
	s.Helper()
	if err := s.tryPut(path, texts...); err != nil {
		s.Fatal(err)
	}
}

func (s *shelf) tryPut(path string, texts ...string) error {
	e := encoded(path, texts...)
	e.Document.Hash = path + strings.Join(texts, "|")
	f := &ingesttest.FakeEmbedder{}
	for i := range e.Chunks {
		c := &e.Chunks[i]
		at := strings.Index(c.Text, " ")
		c.Sentences = []ingest.Span{{Start: 0, End: at}, {Start: at + 1, End: len(c.Text)}}
		out, err := f.EmbedPassages(context.Background(), []string{c.EmbedText(), c.Text[:at], c.Text[at+1:]})
		if err != nil {
			return err
		}
		e.Vectors[i], e.Sentences[i] = out[0].Vector, [][]float32{out[1].Vector, out[2].Vector}
	}
	_, err := s.store.Put(s.Context(), "default", f.Model(), oldRecipe, e)
	return err
}

// reembed runs once, with batches of a few chunks.
func (s *shelf) reembed(ctx context.Context, e ingest.Embedder) (ingest.RevisionReport, error) {
	s.Helper()
	r, err := s.store.Reembed(ctx, "default", e.Model(), e.Dim(), false)
	if err != nil {
		return ingest.RevisionReport{}, err
	}
	defer r.Close()
	c := ingest.DefaultConfig("default")
	c.BatchTokens = 100
	return ingest.NewReembedder(e, c, nil).Run(ctx, r, ingest.RevisionReport{Collection: "default", From: r.From(), To: e.Model()})
}

// check holds everything that is stored against the model that should answer.
func (s *shelf) check(e ingest.Embedder) {
	s.Helper()
	checkCounters(s.T, s.pool)
	var chunks, vectors, stale, indexes int
	err := s.pool.QueryRow(s.Context(), `
		SELECT (SELECT count(*) FROM ragd.chunks), (SELECT count(*) FROM ragd.vectors),
		       (SELECT count(*) FROM ragd.documents WHERE recipe <> $1),
		       (SELECT count(*) FROM pg_class WHERE relname ~ '^vectors_hnsw')`,
		strings.ReplaceAll(oldRecipe, "fake", e.Model())).Scan(&chunks, &vectors, &stale, &indexes)
	if err != nil || chunks == 0 || vectors != chunks || stale != 0 || indexes != 0 {
		s.Errorf("%d chunks, %d vectors, %d recipes of another model, %d indexes (%v)", chunks, vectors, stale, indexes, err)
	}
	if got, err := s.store.Model(s.Context(), "default"); err != nil || got != e.Model() {
		s.Errorf("the model is %q (%v)", got, err)
	}
	for _, r := range s.rows(e.Model()) {
		texts := []string{r.Chunk.EmbedText()}
		for _, span := range r.Chunk.Sentences {
			texts = append(texts, r.Chunk.Text[span.Start:span.End])
		}
		want, err := e.EmbedPassages(s.Context(), texts)
		if err != nil {
			s.Fatal(err)
		}
		if !near(r.Vector, want[0].Vector) || len(r.Sentences) != 2 || !near(r.Sentences[0], want[1].Vector) || !near(r.Sentences[1], want[2].Vector) {
			s.Fatalf("%s %q has the vectors of another text", r.Path, r.Chunk.Text)
		}
	}
}

func near(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x-y)) < 0.01 })
}

// rows are all chunks with their vectors of a model.
func (s *shelf) rows(model string) []store.Row {
	s.Helper()
	var out []store.Row
	err := store.Read(s.Context(), s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(s.Context(), "SELECT id FROM ragd.chunks ORDER BY id")
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		byID, err := store.Load(s.Context(), tx, model, ids)
		for _, id := range ids {
			out = append(out, byID[id])
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	return out
}

// nearest asks the dense side in the words of a model.
func (s *shelf) nearest(e ingest.Embedder, text string) (string, error) {
	v, err := e.EmbedPassages(s.Context(), []string{text})
	if err != nil {
		return "", err
	}
	hits, err := vector.New(s.pool, tenant, vector.Config{}).Retrieve(s.Context(), retrieve.Query{
		Vector: v[0].Vector, Model: e.Model(), Collections: []string{"default"}, Limit: 1,
	})
	if err != nil || len(hits) == 0 {
		return "", err
	}
	return hits[0].Document.Path, nil
}

// TestReembed: until the switch the old model answers and the new one is refused,
// after it the other way round, and nothing of the old one is left.
func TestReembed(t *testing.T) {
	s := newShelf(t, 40)
	before, after := &ingesttest.FakeEmbedder{}, newWide()
	question := "Top > doc007\nrack 7 holds pump p7"
	var asked atomic.Int32
	after.before = func() {
		if path, err := s.nearest(before, question); err != nil || path != "doc007" {
			t.Errorf("the old model finds %q (%v)", path, err)
		}
		asked.Add(1)
	}
	report, err := s.reembed(t.Context(), after)
	if err != nil || !report.Switched || report.From != "fake" || report.To != "wide" || report.Chunks != 80 || report.Total != 80 || report.Tokens == 0 || report.Long != 0 {
		t.Errorf("%+v (%v)", report, err)
	}
	if asked.Load() < 3 {
		t.Errorf("asked %d times meanwhile", asked.Load())
	}
	after.before = nil
	if path, err := s.nearest(after, question); err != nil || path != "doc007" {
		t.Errorf("the new model finds %q (%v)", path, err)
	}
	if _, err := s.nearest(before, question); !errors.Is(err, retrieve.ErrModel) {
		t.Errorf("the old model still answers: %v", err)
	}
	if err := s.tryPut("late", "text of the old model"); !errors.Is(err, ingest.ErrModel) {
		t.Errorf("the old model still writes: %v", err)
	}
	s.check(after)
	again, err := s.reembed(t.Context(), after)
	if err != nil || !again.Switched || again.Chunks != 0 {
		t.Errorf("again: %+v (%v)", again, err)
	}
}

// TestReembedInterrupted: the next run embeds only what is left.
func TestReembedInterrupted(t *testing.T) {
	s := newShelf(t, 100)
	e := newWide()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls int
	e.before = func() {
		if calls++; calls == 20 {
			cancel()
		}
	}
	first, err := s.reembed(ctx, e)
	if !errors.Is(err, context.Canceled) || !first.Interrupted || first.Switched || first.Chunks == 0 || first.Chunks == 200 {
		t.Fatalf("%+v (%v)", first, err)
	}
	checkCounters(t, s.pool)
	if _, err := s.nearest(&ingesttest.FakeEmbedder{}, "pump"); err != nil {
		t.Errorf("the old model does not answer: %v", err)
	}
	second, err := s.reembed(t.Context(), e)
	if err != nil || !second.Switched || first.Chunks+second.Chunks != 200 {
		t.Errorf("%d, then %+v (%v)", first.Chunks, second, err)
	}
	s.check(e)
}

// TestReembedBeside: what is ingested, changed and deleted meanwhile is there, or
// gone, afterwards.
func TestReembedBeside(t *testing.T) {
	s := newShelf(t, 60)
	e := newWide()
	// In the first pass over the chunks, for in the last one writers wait.
	const beside = 30
	var calls int
	e.before = func() {
		switch calls++; {
		case calls > beside:
		case calls%3 == 0:
			s.put(fmt.Sprintf("new%03d", calls), fmt.Sprintf("crane %d", calls), "a second part")
		case calls%3 == 1:
			s.put(fmt.Sprintf("doc%03d", calls), fmt.Sprintf("changed %d", calls))
		default:
			if _, err := s.store.Delete(t.Context(), "default", []string{fmt.Sprintf("doc%03d", calls)}); err != nil {
				t.Error(err)
			}
		}
	}
	report, err := s.reembed(t.Context(), e)
	if err != nil || !report.Switched || calls <= beside {
		t.Fatalf("%+v after %d calls (%v)", report, calls, err)
	}
	e.before = nil
	states, err := s.store.States(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	for call := 1; call <= beside; call++ {
		doc, fresh := fmt.Sprintf("doc%03d", call), fmt.Sprintf("new%03d", call)
		_, isDoc := states[doc]
		_, isFresh := states[fresh]
		if isDoc != (call%3 != 2) || isFresh != (call%3 == 0) {
			t.Errorf("after call %d: %s %v, %s %v", call, doc, isDoc, fresh, isFresh)
		}
		if call%3 == 1 && !strings.Contains(states[doc].Hash, "changed") {
			t.Errorf("%s is the old one", doc)
		}
	}
	s.check(e)
}

// TestReembedAmongWriters: while writers replace and delete as fast as they can,
// the collection is switched whole; then the writers are refused.
func TestReembedAmongWriters(t *testing.T) {
	s := newShelf(t, 20)
	e := newWide()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 3)
	for w := range 3 {
		go func() {
			for i := 0; ctx.Err() == nil; i++ {
				err := s.tryPut(fmt.Sprintf("doc%03d", (i*7+w)%20), fmt.Sprintf("round %d of %d", i, w))
				if err == nil && i%4 == 3 {
					_, err = s.store.Delete(s.Context(), "default", []string{fmt.Sprintf("doc%03d", i%20)})
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	report, err := s.reembed(t.Context(), e)
	if err != nil || !report.Switched {
		t.Errorf("%+v (%v)", report, err)
	}
	stop()
	for range 3 {
		if err := <-done; err != nil && !errors.Is(err, ingest.ErrModel) {
			t.Errorf("a writer: %v", err)
		}
	}
	s.check(e)
}

// TestReembedFailure: a text that the new model cannot encode is named, and the old
// model goes on.
func TestReembedFailure(t *testing.T) {
	s := newShelf(t, 5)
	s.put("bad", "this one is poison for it", "this one is not")
	e := newWide()
	e.Refuse = "poison"
	report, err := s.reembed(t.Context(), e)
	if err != nil || report.Switched || len(report.Failed) != 1 || report.Failed[0].Path != "bad" || report.Chunks != 11 {
		t.Errorf("%+v (%v)", report, err)
	}
	if _, err := s.nearest(&ingesttest.FakeEmbedder{}, "pump"); err != nil {
		t.Errorf("the old model does not answer: %v", err)
	}
	checkCounters(t, s.pool)
	e.Refuse = ""
	if report, err = s.reembed(t.Context(), e); err != nil || !report.Switched || report.Chunks != 1 {
		t.Errorf("%+v (%v)", report, err)
	}
	s.check(e)
}

// TestReembedLongChunks: chunks that are longer than the new model takes are found
// by what any part of them says.
func TestReembedLongChunks(t *testing.T) {
	s := newShelf(t, 3)
	text := strings.Repeat("filler words about nothing. ", 10) + "The heron sleeps. " + strings.Repeat("한국어로 채운 문장입니다. ", 10)
	s.put("long", text)
	e := newWide()
	e.Limit = 40
	report, err := s.reembed(t.Context(), e)
	if err != nil || !report.Switched || report.Long != 1 {
		t.Fatalf("%+v (%v)", report, err)
	}
	checkCounters(t, s.pool)
	if path, err := s.nearest(e, "filler words about nothing"); err != nil || path != "long" {
		t.Errorf("found %q (%v)", path, err)
	}
}

func TestReembedErrors(t *testing.T) {
	s := newShelf(t, 1)
	if _, err := s.store.Reembed(t.Context(), "nowhere", "wide", wideDim, false); !errors.Is(err, ingest.ErrNoCollection) {
		t.Errorf("unknown collection: %v", err)
	}
	for dim, ok := range map[int]bool{4000: true, 4001: false} {
		r, err := s.store.Reembed(t.Context(), "default", fmt.Sprint("dim", dim), dim, false)
		if (err == nil) != ok || (!ok && !errors.Is(err, store.ErrInvalid)) {
			t.Errorf("%d dimensions: %v", dim, err)
		}
		if err == nil {
			if _, err := s.store.Reembed(t.Context(), "default", "wide", wideDim, false); !errors.Is(err, store.ErrReembedding) {
				t.Errorf("a second run beside: %v", err)
			}
			r.Close()
		}
	}
	r, err := s.store.Reembed(t.Context(), "default", "wide", wideDim, false)
	if err != nil {
		t.Fatalf("after the first was closed: %v", err)
	}
	r.Close()
}
