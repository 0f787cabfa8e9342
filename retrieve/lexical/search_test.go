package lexical_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve"
	"ragd/retrieve/lexical"
)

const tenant = "acme"

// corpus is a store and a searcher over one database.
type corpus struct {
	*testing.T
	pool  *pgxpool.Pool
	store *store.Store
	words *lexical.Searcher
	puts  int
}

func newCorpus(t *testing.T) *corpus {
	pool := testenv.Database(t)
	return &corpus{
		T: t, pool: pool, store: store.New(pool, tenant, lexical.Analyzer{}),
		words: lexical.New(pool, tenant, lexical.Analyzer{}),
	}
}

func document(path, hash string, texts ...string) ingest.Encoded {
	e := ingest.Encoded{Document: ingest.Document{
		Path: path, Title: path, Hash: hash, Type: "text/plain", Charset: "utf-8",
		Metadata: map[string]any{"kind": path[:1]},
	}}
	for i, text := range texts {
		e.Chunks = append(e.Chunks, ingest.Chunk{Ordinal: i, Heading: []string{"Part of " + path[:1]}, Text: text, End: len(text), Tokens: 1})
		e.Vectors = append(e.Vectors, []float32{float32(len(text)), float32(i + 1), 1})
	}
	return e
}

func (c *corpus) put(path string, texts ...string) {
	c.Helper()
	c.puts++
	if _, err := c.store.Put(c.Context(), "default", "m", "r", document(path, fmt.Sprint(c.puts), texts...)); err != nil {
		c.Fatal(err)
	}
}

func (c *corpus) delete(paths ...string) {
	c.Helper()
	if n, err := c.store.Delete(c.Context(), "default", paths); err != nil || n != len(paths) {
		c.Fatalf("deleted %d of %d: %v", n, len(paths), err)
	}
}

func (c *corpus) search(q retrieve.Query) *lexical.Matches {
	c.Helper()
	if q.Collections == nil {
		q.Collections = []string{"default"}
	}
	m, err := c.words.Search(c.Context(), q)
	if err != nil {
		c.Fatal(err)
	}
	return m
}

// oracle scores every stored chunk by the formula, from the texts alone.
func (c *corpus) oracle(question string) map[int64]float64 {
	c.Helper()
	terms := map[int64]map[string]int{}
	err := store.Read(c.Context(), c.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(c.Context(), "SELECT id, heading, text FROM ragd.chunks")
		if err != nil {
			return err
		}
		var ch ingest.Chunk
		_, err = pgx.ForEachRow(rows, []any{&ch.ID, &ch.Heading, &ch.Text}, func() error {
			terms[ch.ID] = lexical.Analyzer{}.Terms(ch.EmbedText())
			return nil
		})
		return err
	})
	if err != nil {
		c.Fatal(err)
	}
	df, total := map[string]float64{}, 0.0
	for _, counts := range terms {
		for term, n := range counts {
			df[term]++
			total += float64(n)
		}
	}
	n := float64(len(terms))
	out := map[int64]float64{}
	for id, counts := range terms {
		length := 0.0
		for _, k := range counts {
			length += float64(k)
		}
		for term, asked := range (lexical.Analyzer{}).Terms(question) {
			if tf := float64(counts[term]); tf > 0 {
				idf := math.Log(1 + (n-df[term]+0.5)/(df[term]+0.5))
				out[id] += float64(asked) * idf * tf * 2.2 / (tf + 1.2*(0.25+0.75*length/(total/n)))
			}
		}
	}
	return out
}

func (c *corpus) compare(when string, questions ...string) {
	c.Helper()
	for _, q := range questions {
		want := c.oracle(q)
		m := c.search(retrieve.Query{Text: q})
		if m.Len() != len(want) {
			c.Errorf("%s, %q: %d matches, want %d", when, q, m.Len(), len(want))
		}
		for id, w := range want {
			if got := float64(m.Score(id)); math.Abs(got-w) > 1e-4*max(w, 1) {
				c.Errorf("%s, %q: chunk %d has %g, want %g", when, q, id, got, w)
				break
			}
		}
	}
}

func (c *corpus) count(table string) (n int) {
	c.Helper()
	if err := c.pool.QueryRow(c.Context(), "SELECT count(*) FROM ragd."+table).Scan(&n); err != nil {
		c.Fatal(err)
	}
	return n
}

// sentences makes n short texts of a few words each, some of them rare.
func sentences(rng *rand.Rand, n int) []string {
	common := strings.Fields("pump valve motor relay harbour crane 밸브 펌프 기중기 항구")
	out := make([]string, n)
	for i := range out {
		words := []string{fmt.Sprintf("rare%d", rng.IntN(400))}
		for range 2 + rng.IntN(6) {
			words = append(words, common[rng.IntN(len(common))])
		}
		out[i] = strings.Join(words, " ")
	}
	return out
}

var questions = []string{"pump valve", "밸브를 잠그는 펌프", "rare7 crane", "rare399", "absent", "crane crane relay"}

// The statistics stay exact while documents come, change and go, through every
// kind of merge.
func TestScoresThroughMerges(t *testing.T) {
	c := newCorpus(t)
	rng := rand.New(rand.NewPCG(1, 1))
	paths := []string{}
	for i := range 46 {
		path := fmt.Sprintf("%c/%d", 'a'+i%3, i)
		paths = append(paths, path)
		c.put(path, sentences(rng, 110)...)
		if i == 3 {
			c.compare("fresh rows alone", questions...)
		}
	}
	c.compare("segments and fresh rows", questions...)
	if n := c.count("lexical_segments"); n == 0 || n > 8 {
		t.Errorf("%d segments", n)
	}
	if n := c.count("lexical_fresh"); n >= 5 {
		t.Errorf("%d documents are not merged", n)
	}

	for i := range 6 {
		c.put(paths[i], sentences(rng, 90)...)
	}
	c.delete(paths[10:14]...)
	if c.count("lexical_dead") == 0 {
		t.Error("nothing is marked dead")
	}
	c.compare("with dead chunks", questions...)

	c.delete(paths[14:]...)
	c.compare("after most are gone", questions...)
	if n := c.count("lexical_dead"); n > 4096 {
		t.Errorf("%d dead chunks are kept", n)
	}
	c.delete(paths[:10]...)
	if m := c.search(retrieve.Query{Text: "pump valve rare7"}); m.Len() != 0 {
		t.Errorf("an empty collection has %d matches", m.Len())
	}
	var chunks, terms int64
	if err := c.pool.QueryRow(t.Context(), "SELECT sum(chunks), sum(terms) FROM ragd.lexical_counts").Scan(&chunks, &terms); err != nil || chunks != 0 || terms != 0 {
		t.Errorf("the counters say %d chunks, %d terms (%v)", chunks, terms, err)
	}
}

// Writers and readers at once: a document is there wholly, once, or not at all,
// and in the end the scores are exact.
func TestConcurrentWriters(t *testing.T) {
	c := newCorpus(t)
	const chunks = 40
	ctx, stop := context.WithCancel(t.Context())
	readers := errgroup.Group{}
	readers.Go(func() error {
		for ctx.Err() == nil {
			for k := range 4 {
				m, err := c.words.Search(t.Context(), retrieve.Query{Text: fmt.Sprintf("serial%d", k), Collections: []string{"default"}})
				if errors.Is(err, retrieve.ErrNoCollection) {
					continue
				}
				if err != nil {
					return err
				}
				if n := m.Len(); n != 0 && n != chunks {
					return fmt.Errorf("document %d has %d of %d chunks", k, n, chunks)
				}
			}
		}
		return nil
	})
	writers := errgroup.Group{}
	for k := range 4 {
		writers.Go(func() error {
			rng := rand.New(rand.NewPCG(uint64(k), 2))
			path := fmt.Sprintf("a/%d", k)
			for round := range 12 {
				texts := sentences(rng, chunks)
				for i := range texts {
					texts[i] += fmt.Sprintf(" serial%d", k)
				}
				if _, err := c.store.Put(t.Context(), "default", "m", "r", document(path, fmt.Sprint(k, round), texts...)); err != nil {
					return err
				}
				if round%5 == 4 {
					if _, err := c.store.Delete(t.Context(), "default", []string{path}); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := writers.Wait(); err != nil {
		t.Error(err)
	}
	stop()
	if err := readers.Wait(); err != nil {
		t.Error(err)
	}
	c.compare("at the end", append(questions, "serial2")...)
}

func TestFilters(t *testing.T) {
	c := newCorpus(t)
	c.put("a/1", "pump one", "pump two")
	c.put("b/1", "pump three")
	all := c.search(retrieve.Query{Text: "pump"})
	for name, f := range map[string]struct {
		filters retrieve.Filters
		want    int
	}{
		"none":     {retrieve.Filters{}, 3},
		"prefix":   {retrieve.Filters{PathPrefix: "a/"}, 2},
		"metadata": {retrieve.Filters{Metadata: map[string][]string{"kind": {"b", "z"}}}, 1},
		"nothing":  {retrieve.Filters{PathPrefix: "c/"}, 0},
		"no value": {retrieve.Filters{Metadata: map[string][]string{"kind": {}}}, 0},
	} {
		m := c.search(retrieve.Query{Text: "pump", Filters: f.filters})
		if m.Len() != f.want {
			t.Errorf("%s: %d matches, want %d", name, m.Len(), f.want)
		}
		for _, e := range m.Top(10) {
			if e.Score != all.Score(e.Chunk) {
				t.Errorf("%s: the filter changed a score from %g to %g", name, all.Score(e.Chunk), e.Score)
			}
		}
	}
}

// Odd questions are answered or have no match; none is an error.
func TestOddQuestions(t *testing.T) {
	c := newCorpus(t)
	c.put("a/1", "the pump & the valve | one", "밸브를 잠근다 🚀")
	long := strings.Repeat("unseen word ", 5000)
	for i := range 5000 {
		long += fmt.Sprint(" w", i)
	}
	for _, q := range []struct {
		text string
		want int
	}{
		{"", 0},
		{" \t\n", 0},
		{"the of and which", 0},
		{"?!… ---", 0},
		{"'); DROP TABLE ragd.chunks; -- pump", 1},
		{"pump & !valve | <-> :*", 1},
		{"\x00pump\xff", 1},
		{"ＰＵＭＰ", 1},
		{"\u1107\u1162\u11af\u1107\u1173", 1}, // the jamo of 밸브
		{"🚀", 1},
		{long + " pump", 1},
	} {
		if m := c.search(retrieve.Query{Text: q.text}); m.Len() != q.want {
			t.Errorf("%.40q: %d matches, want %d", q.text, m.Len(), q.want)
		}
	}
}

func TestUnknownCollection(t *testing.T) {
	c := newCorpus(t)
	for _, name := range []string{"none", "a\x00b"} {
		if _, err := c.words.Search(t.Context(), retrieve.Query{Text: "pump", Collections: []string{name}}); !errors.Is(err, retrieve.ErrNoCollection) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Two tenants with a collection of the same name do not see each other.
func TestTenants(t *testing.T) {
	c := newCorpus(t)
	c.put("a/1", "pump")
	m, err := lexical.New(c.pool, "other", lexical.Analyzer{}).Search(t.Context(), retrieve.Query{Text: "pump", Collections: []string{"default"}})
	if !errors.Is(err, retrieve.ErrNoCollection) {
		t.Errorf("%v, %v", m, err)
	}
}

// A chunk is named by a rare identifier alone, not by its parts, nor by one that
// stands everywhere.
func TestNames(t *testing.T) {
	c := newCorpus(t)
	for i := range 6 {
		c.put(fmt.Sprintf("a/%d", i), fmt.Sprintf("FLT-70%d of series K-9, 4 parts", 10+i))
	}
	m := c.search(retrieve.Query{Text: "K-9 오류 FLT-7012가 뜨면"})
	named := 0
	for _, e := range m.Top(10) {
		if m.Names(e.Chunk) {
			named++
		}
	}
	if first := m.Top(1)[0].Chunk; named != 1 || !m.Names(first) {
		t.Errorf("%d chunks are named; the first: %v", named, m.Names(first))
	}
}

func TestShareOfWords(t *testing.T) {
	c := newCorpus(t)
	c.put("a/1", "ERR-4402 film torn", "ERR-4420 film empty", "another text of the same size")
	m := c.search(retrieve.Query{Text: "ERR-4402"})
	top := m.Top(2)
	if len(top) != 2 || m.Share(top[0].Score) < 0.3 || m.Share(top[1].Score) > 0.1 {
		t.Errorf("shares of %v", top)
	}
	if m := c.search(retrieve.Query{Text: "film of another make that nobody has stored here"}); m.Share(m.Top(1)[0].Score) > 0.25 {
		t.Errorf("one word of many has the share %g", m.Share(m.Top(1)[0].Score))
	}
}
