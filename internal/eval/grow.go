package eval

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/retrieve"
)

const (
	// grownChunks is the number of chunks in a document of a grown corpus.
	grownChunks = 10
	// grownQueries is how many questions are timed, after grownWarm untimed ones.
	grownQueries = 200
	grownWarm    = 20
	// grownTime bounds the questions of one search, of which grownLeast are timed
	// whatever they take.
	grownTime   = 2 * time.Minute
	grownLeast  = 20
	growWriters = 2
	// grownVersion is raised when other documents are made.
	grownVersion = 2
)

// Growth is the speed of search in a corpus of some size.
type Growth struct {
	Chunks int `json:"chunks"`
	// PutMS is the time to store a chunk, merges and indexes included; 0 when the
	// corpus was there already.
	PutMS float64 `json:"put_ms"`
	// Index describes the lexical index, TextSearch that of ts_rank_cd.
	Index      IndexSize    `json:"index"`
	TextSearch *TextIndex   `json:"text_search,omitempty"`
	Rows       []Percentile `json:"rows"`
	// Recall is the share of the ten nearest chunks, found by comparing all, that the
	// dense side finds, over the timed questions; nil where it was not run.
	Recall *float64 `json:"dense_recall_at_10,omitempty"`
	// VectorIndex are the bytes of the HNSW index over the vectors; 0 for none.
	VectorIndex int64      `json:"vector_index_bytes,omitempty"`
	Filtered    []Filtered `json:"filtered,omitempty"`
}

// TextIndex is what another index of the same terms takes.
type TextIndex struct {
	Disk     int64   `json:"disk_bytes"`
	IngestMS float64 `json:"ingest_ms"` // a chunk; 0 when it was there already
}

// IndexSize is what the lexical index of a collection takes.
type IndexSize struct {
	Segments int64 `json:"segments"`
	Lists    int64 `json:"lists"`
	Bytes    int64 `json:"bytes"` // of the lists
	// Disk is with rows and index, and what merges left behind.
	Disk int64 `json:"disk_bytes"`
	// IngestMS is what a chunk's words cost at ingest.
	IngestMS float64 `json:"ingest_ms"`
}

// Percentile is the time of a search in milliseconds.
type Percentile struct {
	Pipeline string `json:"pipeline"`
	// Questions were timed.
	Questions int     `json:"questions"`
	P50       float64 `json:"p50_ms"`
	P95       float64 `json:"p95_ms"`
	// CPU is the processor time of ragd a search, without the database's.
	CPU float64 `json:"cpu_ms"`
}

// Grow makes a corpus of n chunks out of a set's own sentences and times the
// searches. Each chunk takes half of the sentences of two documents drawn at
// random; its vector lies between theirs. So words are as frequent as in the set.
func Grow(ctx context.Context, set *Set, p Parts, cfg Config, n int) (*Growth, error) {
	r, err := newRunner(ctx, set, p, cfg)
	if err != nil {
		return nil, err
	}
	g := &grower{runner: r, vectors: map[string][]float32{}}
	if err := g.load(ctx); err != nil {
		return nil, err
	}
	out := &Growth{Chunks: n}
	r.collection = fmt.Sprintf("%s/grown%d/%d", r.collection, grownVersion, n)
	if out.PutMS, err = g.fill(ctx, n); err != nil {
		return nil, fmt.Errorf("grow to %d chunks: %w", n, err)
	}
	if out.Index, err = p.Inside.indexSize(ctx, r.collection); err != nil {
		return nil, err
	}
	if out.Index.IngestMS, err = g.wordCost(ctx, n); err != nil {
		return nil, err
	}
	for _, name := range cfg.Pipelines {
		row, err := r.measure(ctx, name, func(ctx context.Context, q retrieve.Query, spent *stopwatch) error {
			_, err := r.ask(ctx, name, q, spent)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%d chunks, %s: %w", n, name, err)
		}
		out.Rows = append(out.Rows, row)
	}
	if slices.Contains(cfg.Pipelines, Dense) {
		if err := g.near(ctx, out); err != nil {
			return nil, fmt.Errorf("%d chunks, recall of the dense side: %w", n, err)
		}
	}
	if !cfg.NoTextSearch {
		if err := g.compare(ctx, out); err != nil {
			return nil, fmt.Errorf("%d chunks, %s: %w", n, TextSearch, err)
		}
	}
	out.Filtered, err = g.filtered(ctx)
	return out, err
}

// compare times what PostgreSQL has by itself on the same chunks and questions.
func (g *grower) compare(ctx context.Context, out *Growth) error {
	t, err := openTextSearch(ctx, g.Inside, g.collection)
	if err != nil {
		return err
	}
	out.TextSearch = &TextIndex{}
	out.TextSearch.IngestMS, err = t.fill(ctx, g.Inside.Tenant, out.Chunks, func(done int) { g.cfg.Progress("words for "+TextSearch, done, out.Chunks) })
	if err != nil {
		return err
	}
	if out.TextSearch.Disk, err = t.bytes(ctx); err != nil {
		return err
	}
	row, err := g.measure(ctx, TextSearch, func(ctx context.Context, q retrieve.Query, _ *stopwatch) error {
		_, err := t.search(ctx, q.Text, q.Limit)
		return err
	})
	out.Rows = append(out.Rows, row)
	return err
}

func at(sorted []float64, q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }

// grower makes documents of the sentences of a set.
type grower struct {
	*runner
	pieces  []piece
	vectors map[string][]float32 // of whole documents, by path
	model   string
	dim     int
}

// piece is a document of the set, cut into sentences.
type piece struct {
	title     string
	sentences []string
	vector    []float32
}

func (g *grower) load(ctx context.Context) error {
	g.model, g.dim = noModel{}.Model(), noDim
	if g.needsVectors() {
		g.model, g.dim = g.Embedder.Model(), g.Embedder.Dim()
		var err error
		if g.vectors, err = g.Inside.vectors(ctx, g.collection); err != nil {
			return err
		}
	}
	for _, d := range g.set.Documents {
		p := piece{title: d.Title, vector: g.vectors[d.ID]}
		for _, s := range chunk.Sentences(d.Text) {
			p.sentences = append(p.sentences, d.Text[s.Start:s.End])
		}
		if len(p.sentences) > 0 {
			g.pieces = append(g.pieces, p)
		}
	}
	if len(g.pieces) < 2 {
		return fmt.Errorf("%w: %s: nothing to grow from", ErrSet, g.set.Name)
	}
	return nil
}

// fill stores what is missing and returns the milliseconds a chunk took.
func (g *grower) fill(ctx context.Context, n int) (float64, error) {
	states, err := g.Store.States(ctx, g.collection)
	if err != nil {
		return 0, err
	}
	start, stored := time.Now(), 0
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(growWriters)
	for i := 0; grownSize(n, i) > 0 && gctx.Err() == nil; i++ {
		if _, there := states[strconv.Itoa(i)]; there {
			continue
		}
		doc := g.document(n, i)
		stored += len(doc.Chunks)
		g.cfg.Progress("grow", i*grownChunks, n)
		group.Go(func() error {
			_, err := g.Store.Put(gctx, g.collection, g.model, "grown", doc)
			return err
		})
	}
	if err := group.Wait(); err != nil || stored == 0 {
		return 0, err
	}
	return milliseconds(time.Since(start)) / float64(stored), nil
}

// grownSize is how many chunks document i has in a corpus of n; the first has one.
func grownSize(n, i int) int {
	if i == 0 {
		return min(n, 1)
	}
	return min(grownChunks, n-1-(i-1)*grownChunks)
}

// document makes document i of a corpus of n chunks.
func (g *grower) document(n, i int) ingest.Encoded {
	rng := rand.New(rand.NewPCG(uint64(i), 7))
	path := strconv.Itoa(i)
	e := ingest.Encoded{Document: ingest.Document{
		Path: path, Title: path, Type: "text/plain", Charset: "utf-8", Hash: path, Metadata: metadata(n, i),
	}}
	for i := range grownSize(n, i) {
		a, b := g.pieces[rng.IntN(len(g.pieces))], g.pieces[rng.IntN(len(g.pieces))]
		c := ingest.Chunk{Ordinal: i, Text: half(rng, a) + " " + half(rng, b), Tokens: 1}
		if a.title != "" {
			c.Heading = []string{a.title}
		}
		c.End = len(c.Text)
		e.Chunks = append(e.Chunks, c)
		e.Vectors = append(e.Vectors, g.between(rng, a.vector, b.vector))
	}
	return e
}

// half draws half of the sentences, rounded up.
func half(rng *rand.Rand, p piece) string {
	var out []string
	for _, i := range rng.Perm(len(p.sentences))[:(len(p.sentences)+1)/2] {
		out = append(out, p.sentences[i])
	}
	return strings.Join(out, " ")
}

// between is the unit vector of the sum of two, with a little noise.
func (g *grower) between(rng *rand.Rand, a, b []float32) []float32 {
	noise := 0.1 / math.Sqrt(float64(g.dim))
	v := make([]float32, g.dim)
	var sum float64
	for i := range v {
		x := noise * rng.NormFloat64()
		if a != nil && b != nil {
			x += float64(a[i] + b[i])
		}
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
