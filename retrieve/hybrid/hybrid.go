// Package hybrid searches by meaning and by words at once and fuses what both find.
package hybrid

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"ragd/ingest/store"
	"ragd/retrieve"
	"ragd/retrieve/fuse"
	"ragd/retrieve/lexical"
)

// Words is the lexical side.
type Words interface {
	Search(ctx context.Context, q retrieve.Query) (*lexical.Matches, error)
}

// Config tunes the fusion.
type Config struct {
	// Candidates is how many of each side are fused, at least as many as asked for.
	Candidates int
	// Method and DenseWeight say how (fuse.Fuse).
	Method      fuse.Method
	DenseWeight float32
}

// DefaultConfig did best over all sets that were measured (docs/RETRIEVAL.md).
func DefaultConfig() Config {
	return Config{Candidates: 100, Method: fuse.Convex, DenseWeight: 0.5}
}

// Retriever implements retrieve.Retriever over both sides. A question without a
// word to search for is answered by the dense side alone.
type Retriever struct {
	pool  *pgxpool.Pool
	dense retrieve.Retriever
	words Words
	cfg   Config
}

var _ retrieve.Retriever = (*Retriever)(nil)

// New puts the sides together; pool is where the chunks lie.
func New(pool *pgxpool.Pool, dense retrieve.Retriever, words Words, cfg Config) (*Retriever, error) {
	switch {
	case cfg.Candidates < 1:
		return nil, fmt.Errorf("hybrid: %d candidates are fewer than 1", cfg.Candidates)
	case cfg.DenseWeight < 0 || cfg.DenseWeight > 1:
		return nil, fmt.Errorf("hybrid: dense weight %g is not between 0 and 1", cfg.DenseWeight)
	case !slices.Contains(fuse.Methods, string(cfg.Method)):
		return nil, fmt.Errorf("hybrid: method %q is not one of %v", cfg.Method, fuse.Methods)
	}
	return &Retriever{pool: pool, dense: dense, words: words, cfg: cfg}, nil
}

// attempts is how often a search is made when documents that it finds are replaced
// or deleted meanwhile.
const attempts = 3

// Retrieve implements retrieve.Retriever. Every hit has both scores, exact, and
// its rank in the lists that hold it. Each side reads one state of the database, but
// perhaps not the same: when something that a side found is gone at the end, the
// search is made again. So a document that is replaced meanwhile is found wholly as
// it was before or as it is after; one that is replaced over and over may be found in
// part, never with old text.
func (r *Retriever) Retrieve(ctx context.Context, q retrieve.Query) ([]retrieve.Hit, error) {
	for attempt := 1; ; attempt++ {
		hits, changed, err := r.retrieve(ctx, q)
		if err != nil || !changed || attempt == attempts {
			return hits, err
		}
	}
}

func (r *Retriever) retrieve(ctx context.Context, q retrieve.Query) (hits []retrieve.Hit, changed bool, err error) {
	sides := q
	sides.Limit = max(q.Limit, r.cfg.Candidates)
	var near []retrieve.Hit
	var matches *lexical.Matches
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		ctx, end := q.Begin(gctx, retrieve.Dense)
		defer func() { end(err) }()
		near, err = r.dense.Retrieve(ctx, sides)
		return err
	})
	g.Go(func() (err error) {
		ctx, end := q.Begin(gctx, retrieve.Lexical)
		defer func() { end(err) }()
		matches, err = r.words.Search(ctx, sides)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, false, err
	}
	return r.fuse(ctx, q, near, matches)
}

func (r *Retriever) fuse(ctx context.Context, q retrieve.Query, near []retrieve.Hit, m *lexical.Matches) (hits []retrieve.Hit, changed bool, err error) {
	ctx, end := q.Begin(ctx, retrieve.Fuse)
	defer func() { end(err) }()
	top := m.Top(max(q.Limit, r.cfg.Candidates))
	if hits, changed, err = r.union(ctx, q, near, top); err != nil {
		return nil, false, fmt.Errorf("fuse: %w", err)
	}
	ranks := make(map[int64]int, len(top))
	for i, match := range top {
		ranks[match.Chunk] = i + 1
	}
	list := make([]fuse.Candidate, len(hits))
	for i := range hits {
		s := &hits[i].Scores
		s.Lexical = m.Score(hits[i].Chunk.ID)
		s.LexicalShare, s.Named = m.Share(s.Lexical), m.Names(hits[i].Chunk.ID)
		s.LexicalRank = ranks[hits[i].Chunk.ID]
		list[i] = fuse.Candidate{Cosine: s.Dense, BM25: s.Lexical, DenseRank: s.DenseRank, LexicalRank: s.LexicalRank}
	}
	scores, err := fuse.Fuse(r.cfg.Method, list, r.cfg.DenseWeight)
	if err != nil {
		return nil, false, err
	}
	for i, s := range scores {
		h := &hits[i].Scores
		h.Fused, h.DensePart, h.LexicalPart = s.Fused, s.Dense, s.Lexical
	}
	slices.SortStableFunc(hits, better)
	return hits[:min(q.Limit, len(hits))], changed, nil
}

// better puts the higher score first, of equal ones the higher cosine.
func better(a, b retrieve.Hit) int {
	return cmp.Or(
		cmp.Compare(b.Scores.Fused, a.Scores.Fused),
		cmp.Compare(b.Scores.Dense, a.Scores.Dense),
		cmp.Compare(a.Chunk.ID, b.Chunk.ID),
	)
}

// union is what either side found and is still there, each with its cosine; changed
// says that something is not.
func (r *Retriever) union(ctx context.Context, q retrieve.Query, near []retrieve.Hit, top []lexical.Match) (hits []retrieve.Hit, changed bool, err error) {
	known := make([]int64, len(near))
	for i, h := range near {
		known[i] = h.Chunk.ID
	}
	var missing []int64
	for _, m := range top {
		if !slices.Contains(known, m.Chunk) {
			missing = append(missing, m.Chunk)
		}
	}
	err = store.Read(ctx, r.pool, func(tx pgx.Tx) error {
		alive, err := alive(ctx, tx, known)
		if err != nil {
			return err
		}
		rows, err := store.Load(ctx, tx, q.Model, missing)
		if err != nil {
			return err
		}
		hits = slices.DeleteFunc(slices.Clone(near), func(h retrieve.Hit) bool { return !alive[h.Chunk.ID] })
		for _, id := range missing {
			if row, ok := rows[id]; ok {
				hits = append(hits, hit(q, row))
			}
		}
		changed = len(hits) < len(near)+len(missing)
		return nil
	})
	return hits, changed, err
}

func alive(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]bool, error) {
	rows, err := tx.Query(ctx, "SELECT id FROM ragd.chunks WHERE id = ANY($1)", ids)
	if err != nil {
		return nil, err
	}
	out := make(map[int64]bool, len(ids))
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		out[id] = true
		return nil
	})
	return out, err
}

// hit is a chunk that only the words found.
func hit(q retrieve.Query, row store.Row) retrieve.Hit {
	h := retrieve.Hit{
		Chunk:    row.Chunk,
		Document: retrieve.Document{ID: row.DocumentID, Collection: row.Collection, Path: row.Path, Title: row.Title},
	}
	if len(row.Vector) == len(q.Vector) {
		h.Vector, h.SentenceVectors = row.Vector, row.Sentences
		for i, x := range q.Vector {
			h.Scores.Dense += x * row.Vector[i]
		}
	}
	return h
}
