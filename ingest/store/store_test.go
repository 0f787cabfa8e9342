package store_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve/lexical"
)

const (
	dim    = 16
	tenant = "acme"
	model  = "test-model"
	recipe = "recipe-1"
)

// unit is a vector of length 1 that depends on the text alone.
func unit(text string) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	rng := rand.New(rand.NewPCG(h.Sum64(), 1))
	v := make([]float32, dim)
	var sum float64
	for i := range v {
		v[i] = float32(rng.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// encoded is a document with one chunk, of two sentences, for each text.
func encoded(path string, texts ...string) ingest.Encoded {
	e := ingest.Encoded{Document: ingest.Document{
		Path: path, Title: "About " + path, Type: "text/markdown", Charset: "euc-kr", CharsetGuessed: true,
		Hash: strings.Join(texts, "|"), Bytes: 1234, Modified: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Metadata: map[string]any{"lang": "ko", "tags": []string{"a", "b"}},
	}}
	for i, text := range texts {
		half := len(text) / 2
		c := ingest.Chunk{
			Ordinal: i, Heading: []string{"Top", path}, Text: text, Start: 10 * i, End: 10*i + len(text), Page: i + 1, Tokens: 7 + i,
			Sentences: []ingest.Span{{Start: 0, End: half}, {Start: half, End: len(text)}},
		}
		e.Chunks = append(e.Chunks, c)
		e.Vectors = append(e.Vectors, unit(text))
		e.Sentences = append(e.Sentences, [][]float32{unit(text + "0"), unit(text + "1")})
	}
	return e
}

func put(t *testing.T, s *store.Store, collection string, e ingest.Encoded) bool {
	t.Helper()
	changed, err := s.Put(t.Context(), collection, model, recipe, e)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

// chunksOf loads the chunks of a path, by ordinal, in one transaction.
func chunksOf(ctx context.Context, pool *pgxpool.Pool, path string) ([]store.Row, error) {
	var list []store.Row
	err := store.Read(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT c.id FROM ragd.chunks c JOIN ragd.documents d ON d.id = c.document_id
			WHERE d.path = $1 ORDER BY c.ordinal`, path)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		byID, err := store.Load(ctx, tx, model, ids)
		list = list[:0]
		for _, id := range ids {
			list = append(list, byID[id])
		}
		return err
	})
	return list, err
}

func TestPutStoresAll(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, tenant, lexical.Analyzer{})
	e := encoded("docs/hangul 한글.md", "The first chunk. It is short.", "두 번째 조각. 짧다.")
	if !put(t, s, "default", e) {
		t.Error("a new document counts as unchanged")
	}

	rows, err := chunksOf(t.Context(), pool, e.Document.Path)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != len(e.Chunks) {
		t.Fatalf("%d chunks, want %d", len(rows), len(e.Chunks))
	}
	for i, r := range rows {
		if diff := cmp.Diff(e.Chunks[i], r.Chunk, cmpopts.IgnoreFields(ingest.Chunk{}, "ID")); diff != "" {
			t.Errorf("chunk %d (-want +got):\n%s", i, diff)
		}
		near := cmpopts.EquateApprox(0, 0.005) // half floats, int8
		if diff := cmp.Diff(e.Vectors[i], r.Vector, near); diff != "" {
			t.Errorf("vector %d:\n%s", i, diff)
		}
		if diff := cmp.Diff(e.Sentences[i], r.Sentences, near); diff != "" {
			t.Errorf("sentences %d:\n%s", i, diff)
		}
	}

	docs, err := s.Documents(t.Context(), "default")
	if err != nil || len(docs) != 1 {
		t.Fatalf("documents: %v, %v", docs, err)
	}
	d := e.Document
	want := store.DocumentInfo{
		Path: d.Path, Title: d.Title, Hash: d.Hash, Type: d.Type, Charset: d.Charset, CharsetGuessed: true, Bytes: d.Bytes,
		Modified: &d.Modified, Metadata: map[string]any{"lang": "ko", "tags": []any{"a", "b"}}, Chunks: 2,
	}
	if diff := cmp.Diff(want, docs[0], cmpopts.IgnoreFields(store.DocumentInfo{}, "ID", "Created", "Updated"), cmpopts.EquateApproxTime(0)); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	if _, err := s.Documents(t.Context(), "unknown"); !errors.Is(err, ingest.ErrNoCollection) {
		t.Errorf("an unknown collection: %v", err)
	}
	counts, err := s.Counts(t.Context())
	if want := (store.Counts{Collections: 1, Documents: 1, Chunks: 2}); err != nil || counts != want {
		t.Errorf("counts %+v (%v), want %+v", counts, err, want)
	}
	list, err := s.Collections(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "default" || list[0].Chunks != 2 || list[0].Bytes != 1234 {
		t.Errorf("collections %+v (%v)", list, err)
	}
}

func TestPutChangedOnlyWhenNew(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, tenant, lexical.Analyzer{})
	steps := []struct {
		name, recipe string
		e            ingest.Encoded
		changed      bool
	}{
		{"first", "r1", encoded("a.md", "one", "two"), true},
		{"again", "r1", encoded("a.md", "one", "two"), false},
		{"other text", "r1", encoded("a.md", "three"), true},
		{"other recipe", "r2", encoded("a.md", "three"), true},
		{"no chunks", "r2", encoded("a.md"), true},
		{"other path, same text", "r2", encoded("b.md", "three"), true},
	}
	for _, st := range steps {
		changed, err := s.Put(t.Context(), "default", model, st.recipe, st.e)
		if err != nil || changed != st.changed {
			t.Errorf("%s: changed %v (%v), want %v", st.name, changed, err, st.changed)
		}
		states, err := s.States(t.Context(), "default")
		if want := (ingest.State{Hash: st.e.Document.Hash, Recipe: st.recipe}); err != nil || states[st.e.Document.Path] != want {
			t.Errorf("%s: state %+v (%v), want %+v", st.name, states[st.e.Document.Path], err, want)
		}
		checkCounters(t, pool)
	}
}

// checkCounters holds the counters and the vectors against the chunks.
func checkCounters(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var wrong, stray, orphans int
	err := pool.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM ragd.collection_models cm
		        FULL JOIN (SELECT collection_id, model_id, count(*) n FROM ragd.vectors GROUP BY 1, 2) v USING (collection_id, model_id)
		        WHERE coalesce(cm.chunks, 0) <> coalesce(v.n, 0)),
		       (SELECT count(*) FROM ragd.documents d
		        WHERE d.chunks <> (SELECT count(*) FROM ragd.chunks c WHERE c.document_id = d.id)),
		       (SELECT count(*) FROM ragd.chunks c FULL JOIN ragd.vectors v ON v.chunk_id = c.id
		        WHERE c.id IS NULL OR v.chunk_id IS NULL OR c.document_id <> v.document_id)
		       + (SELECT count(*) FROM ragd.sentence_vectors s LEFT JOIN ragd.vectors v USING (chunk_id, model_id) WHERE v.chunk_id IS NULL)
		       + (SELECT count(*) FROM ragd.lexical_counts l
		          FULL JOIN (SELECT d.collection_id, count(*) n, sum(c.terms) t FROM ragd.chunks c JOIN ragd.documents d ON d.id = c.document_id GROUP BY 1) c
		          USING (collection_id)
		          WHERE (coalesce(l.chunks, 0), coalesce(l.terms, 0)) <> (coalesce(c.n, 0), coalesce(c.t, 0)))`).Scan(&wrong, &stray, &orphans)
	if err != nil {
		t.Fatal(err)
	}
	if wrong+stray+orphans != 0 {
		t.Errorf("%d wrong counters, %d documents with a wrong chunk count, %d chunks or vectors alone", wrong, stray, orphans)
	}
}

func TestDelete(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, tenant, lexical.Analyzer{})
	for _, path := range []string{"a", "b", "c"} {
		put(t, s, "default", encoded(path, path+" text"))
		put(t, s, "other", encoded(path, path+" text"))
	}
	n, err := s.Delete(t.Context(), "default", []string{"c", "a", "never", "a", "x\x00y"})
	if err != nil || n != 2 {
		t.Errorf("deleted %d (%v), want 2", n, err)
	}
	states, err := s.States(t.Context(), "default")
	if err != nil || len(states) != 1 || states["b"].Hash == "" {
		t.Errorf("left: %v (%v), want b", states, err)
	}
	if states, err := s.States(t.Context(), "other"); err != nil || len(states) != 3 {
		t.Errorf("another collection: %v (%v), want all three", states, err)
	}
	if n, err := s.Delete(t.Context(), "unknown", []string{"a"}); err != nil || n != 0 {
		t.Errorf("unknown collection: %d, %v", n, err)
	}
	checkCounters(t, pool)
}

func TestTenantsAreApart(t *testing.T) {
	pool := testenv.Database(t)
	mine, theirs := store.New(pool, "mine", lexical.Analyzer{}), store.New(pool, "theirs", lexical.Analyzer{})
	put(t, mine, "default", encoded("a.md", "mine"))
	put(t, theirs, "default", encoded("a.md", "theirs", "more"))
	if n, err := theirs.Delete(t.Context(), "default", []string{"a.md"}); err != nil || n != 1 {
		t.Fatalf("delete: %d, %v", n, err)
	}
	for s, want := range map[*store.Store]store.Counts{
		mine: {Collections: 1, Documents: 1, Chunks: 1}, theirs: {Collections: 1}, store.New(pool, "third", lexical.Analyzer{}): {},
	} {
		if got, err := s.Counts(t.Context()); err != nil || got != want {
			t.Errorf("counts %+v (%v), want %+v", got, err, want)
		}
	}
}

// TestCharactersOfSQL: what means something to SQL, LIKE, JSON or pgx is text.
func TestCharactersOfSQL(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, "o'tenant", lexical.Analyzer{})
	for _, text := range []string{
		`it's`, `"quoted"`, `100%`, `under_score`, `back\slash`, `; DROP TABLE ragd.chunks; --`, `/* c */`, `$1 $$ $x$`,
		`@path`, `:name ?`, `{"a": [1]}`, `{a,b}`, `\N`, `\.`, "tab\tline\nend\r", `E'\x00'`, "한글 ’ “", `NULL`,
	} {
		e := encoded("dir/"+text, text, "second "+text)
		e.Document.Title, e.Chunks[0].Heading = text, []string{text, `{` + text + `}`}
		e.Document.Metadata = map[string]any{text: text, "list": []string{text}}
		put(t, s, "c "+text, e)
		rows, err := chunksOf(t.Context(), pool, e.Document.Path)
		if err != nil || len(rows) != 2 {
			t.Errorf("%q: %d chunks, %v", text, len(rows), err)
			continue
		}
		if got := rows[0]; got.Chunk.Text != text || got.Title != text || !cmp.Equal(got.Chunk.Heading, e.Chunks[0].Heading) {
			t.Errorf("%q came back as %+v", text, got)
		}
		docs, err := s.Documents(t.Context(), "c "+text)
		if err != nil || len(docs) != 1 || docs[0].Metadata[text] != text {
			t.Errorf("%q: documents %+v, %v", text, docs, err)
		}
		if n, err := s.Delete(t.Context(), "c "+text, []string{e.Document.Path}); err != nil || n != 1 {
			t.Errorf("%q: deleted %d, %v", text, n, err)
		}
	}
}

// TestUnstorableText: zero bytes and broken UTF-8 in any field are replaced, and
// spans keep their meaning.
func TestUnstorableText(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, tenant, lexical.Analyzer{})
	const bad, good = "a\x00b\xffc", "a b?c"
	e := encoded("a.md", bad+" end")
	d := &e.Document
	d.Title, d.Hash, d.Type, d.Charset = bad, bad, bad, bad
	d.Metadata = map[string]any{bad: bad, "list": []any{bad, 7, nil}, "number": 1.5, "yes": true, "none": nil, "strings": []string{bad}}
	e.Chunks[0].Heading = []string{bad}
	put(t, s, "default", e)
	rows, err := chunksOf(t.Context(), pool, "a.md")
	if err != nil {
		t.Fatal(err)
	}
	if c := rows[0].Chunk; c.Text != good+" end" || c.Heading[0] != good || rows[0].Title != good || !cmp.Equal(c.Sentences, e.Chunks[0].Sentences) {
		t.Errorf("stored %+v", rows[0])
	}
	docs, err := s.Documents(t.Context(), "default")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{good: good, "list": []any{good, "7"}, "number": "1.5", "yes": "true", "strings": []any{good}}
	if diff := cmp.Diff(want, docs[0].Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestPutRefuses(t *testing.T) {
	s := store.New(testenv.Database(t), tenant, lexical.Analyzer{})
	put(t, s, "default", encoded("first.md", "fixes the dimension"))
	change := func(f func(e *ingest.Encoded)) ingest.Encoded {
		e := encoded("a.md", "one", "two")
		f(&e)
		return e
	}
	for _, tt := range []struct {
		name string
		e    ingest.Encoded
		says string
	}{
		{"no path", change(func(e *ingest.Encoded) { e.Document.Path = "" }), "no path"},
		{"zero byte", change(func(e *ingest.Encoded) { e.Document.Path = "a\x00b" }), "zero byte"},
		{"invalid UTF-8", change(func(e *ingest.Encoded) { e.Document.Path = "a\xff" }), "invalid UTF-8"},
		{"long path", change(func(e *ingest.Encoded) { e.Document.Path = strings.Repeat("p", 2001) }), "2001 bytes"},
		{"vector missing", change(func(e *ingest.Encoded) { e.Vectors = e.Vectors[:1] }), "2 chunks but 1 vectors"},
		{"vector short", change(func(e *ingest.Encoded) { e.Vectors[1] = e.Vectors[1][:3] }), "chunk 1: vector of 3 dimensions"},
		{"vector zero", change(func(e *ingest.Encoded) { e.Vectors[1] = make([]float32, dim) }), "squared length 0"},
		{"vector NaN", change(func(e *ingest.Encoded) { e.Vectors[0][2] = float32(math.NaN()) }), "squared length NaN"},
		{"vector infinite", change(func(e *ingest.Encoded) { e.Vectors[0][2] = float32(math.Inf(1)) }), "squared length +Inf"},
		{"sentences missing", change(func(e *ingest.Encoded) { e.Sentences = e.Sentences[:1] }), "sentence vectors of 1"},
		{"sentence missing", change(func(e *ingest.Encoded) { e.Sentences[0] = e.Sentences[0][:1] }), "2 sentences but 1"},
		{"sentence zero", change(func(e *ingest.Encoded) { e.Sentences[0][1] = make([]float32, dim) }), "sentence 1: vector of squared length 0"},
		{"other dimension", change(func(e *ingest.Encoded) {
			e.Sentences = nil
			for i := range e.Vectors {
				e.Vectors[i] = e.Vectors[i][:8]
			}
		}), "16 dimensions in the database, these have 8"},
	} {
		_, err := s.Put(t.Context(), "default", model, recipe, tt.e)
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want ErrInvalid saying %q", tt.name, err, tt.says)
		}
	}
	for _, name := range []string{"", "a\x00", strings.Repeat("n", 2001)} {
		if _, err := s.Put(t.Context(), name, model, recipe, encoded("a.md", "x")); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("collection %.10q: %v, want ErrInvalid", name, err)
		}
		if _, err := s.Put(t.Context(), "default", name, recipe, encoded("a.md", "x")); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("model %.10q: %v, want ErrInvalid", name, err)
		}
	}
	if counts, err := s.Counts(t.Context()); err != nil || counts.Documents != 1 {
		t.Errorf("refused documents left %+v (%v)", counts, err)
	}
}

// TestNoSentences: without sentence vectors there are none, not empty ones; a
// chunk without sentences is no gap in the others.
func TestNoSentences(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, tenant, lexical.Analyzer{})
	off := encoded("off.md", "one", "two")
	off.Sentences = nil
	put(t, s, "default", off)
	gap := encoded("gap.md", "one", "two")
	gap.Chunks[0].Sentences, gap.Sentences[0] = nil, nil
	put(t, s, "default", gap)
	for path, want := range map[string][2]int{"off.md": {0, 0}, "gap.md": {0, 2}} {
		rows, err := chunksOf(t.Context(), pool, path)
		if err != nil || len(rows) != 2 {
			t.Fatalf("%s: %d, %v", path, len(rows), err)
		}
		if got := [2]int{len(rows[0].Sentences), len(rows[1].Sentences)}; got != want {
			t.Errorf("%s: sentence vectors %v, want %v", path, got, want)
		}
		if (rows[0].Sentences == nil) != (path == "off.md") {
			t.Errorf("%s: nil is %v", path, rows[0].Sentences == nil)
		}
	}
}

func ExampleStore_Put() {
	ctx := context.Background()
	cfg, err := store.PoolConfig("postgres:///ragd?host=/var/lib/ragd/pg/run&user=ragd")
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	s := store.New(pool, "default", lexical.Analyzer{})
	changed, err := s.Put(ctx, "handbook", "multilingual-e5-small", "recipe", ingest.Encoded{
		Document: ingest.Document{Path: "leave.md", Title: "Leave", Hash: "9f86d0"},
		Chunks:   []ingest.Chunk{{Text: "Twenty days a year."}},
		Vectors:  [][]float32{{0.6, 0.8}},
	})
	if errors.Is(err, store.ErrUnavailable) {
		fmt.Println("try again later")
		return
	}
	fmt.Println(changed, err)
}
