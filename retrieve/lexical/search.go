package lexical

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest"
	"ragd/ingest/postings"
	"ragd/ingest/store"
	"ragd/retrieve"
	"ragd/retrieve/internal/filter"
)

const (
	// maxTerms is how many terms of a question are searched for, the rarest first.
	maxTerms = 256
	// maxLookups is how many are looked up to find the rarest.
	maxLookups = 4096
)

// Searcher finds chunks of one tenant by their words. It is safe for concurrent use.
type Searcher struct {
	pool     *pgxpool.Pool
	tenant   string
	analyzer ingest.Analyzer
	// wide is how many chunks a filter may leave before it is asked about the best
	// matches only.
	wide int64
}

// wideFilter: reading more ids than that takes longer than asking about candidates.
const wideFilter = 4096

// New returns a searcher; analyzer is the one that the documents were stored with.
func New(pool *pgxpool.Pool, tenant string, analyzer ingest.Analyzer) *Searcher {
	return &Searcher{pool: pool, tenant: tenant, analyzer: analyzer, wide: wideFilter}
}

// Search scores every chunk of the collections, as if they were one, that holds a word of the question
// and passes the filters; Matches.Top then has up to q.Limit of them, or all when
// q.Limit is 0. A question without a word that can be searched for has
// no matches. The score does not depend on the filters. Everything is read from
// one state of the database. It returns retrieve.ErrNoCollection for an unknown
// collection and ingest.ErrUnavailable when the database cannot be reached.
func (s *Searcher) Search(ctx context.Context, q retrieve.Query) (*Matches, error) {
	counts := s.analyzer.Terms(q.Text)
	var m *Matches
	err := store.Read(ctx, s.pool, func(tx pgx.Tx) (err error) {
		r := reader{tx: tx, counts: counts, wide: s.wide}
		m, err = r.search(ctx, s.tenant, q)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("lexical search in %q: %w", q.Collections, err)
	}
	return m, nil
}

// reader answers one question from one state of the database.
type reader struct {
	tx          pgx.Tx
	counts      map[string]int // of the question's terms
	collections []int64
	stats       stats

	terms    []string // searched for, in byte order
	segments []stored
	fresh    map[string][]postings.Posting
	dead     []int64 // chunk ids, rising
	filtered bool
	passing  []int64 // chunk ids that pass the filters, rising
	wide     int64
}

// stored is a posting list as it lies in a segment.
type stored struct {
	term string
	n    int64 // living postings
	data []byte
}

func (r *reader) search(ctx context.Context, tenant string, q retrieve.Query) (*Matches, error) {
	if err := r.open(ctx, tenant, q.Collections); err != nil {
		return nil, err
	}
	where, ok := filter.New(q.Filters)
	if !ok || len(r.counts) == 0 {
		return &Matches{}, nil
	}
	r.terms = longFirst(r.counts, maxLookups)
	if err := r.chooseTerms(ctx); err != nil {
		return nil, err
	}
	late, err := r.late(ctx, where, q.Limit)
	if err != nil {
		return nil, err
	}
	early := where
	if late {
		early = filter.Filter{}
	}
	if err := r.read(ctx, early); err != nil {
		return nil, err
	}
	m, err := r.match()
	if err == nil && late {
		m.top, err = r.passingTop(ctx, where, m, q.Limit)
	}
	return m, err
}

func (r *reader) open(ctx context.Context, tenant string, names []string) (err error) {
	if r.collections, err = filter.Collections(ctx, r.tx, tenant, names); err != nil {
		return err
	}
	return r.tx.QueryRow(ctx, `
		SELECT coalesce(sum(chunks), 0)::bigint, coalesce(sum(terms), 0)::bigint
		FROM ragd.lexical_counts WHERE collection_id = ANY ($1)`, r.collections).Scan(&r.stats.chunks, &r.stats.terms)
}

// longFirst returns at most n terms in byte order; of too many the longer ones,
// which are the rarer.
func longFirst(counts map[string]int, n int) []string {
	terms := slices.Sorted(maps.Keys(counts))
	if len(terms) > n {
		slices.SortStableFunc(terms, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
		terms = terms[:n]
		slices.Sort(terms)
	}
	return terms
}

// match weighs the terms and scores the chunks.
func (r *reader) match() (*Matches, error) {
	n, err := r.count()
	if err != nil {
		return nil, err
	}
	lists, possible := r.weigh(n)
	total := int64(0)
	for _, k := range n {
		total += k
	}
	m := &Matches{Possible: possible, list: make([]Match, 0, min(total, r.stats.chunks))}
	dead, passing := r.dead, r.passing
	err = score(lists, r.stats, func(chunk int64, score float32) {
		if dead = from(dead, chunk); len(dead) > 0 && dead[0] == chunk {
			return
		}
		if r.filtered {
			if passing = from(passing, chunk); len(passing) == 0 || passing[0] != chunk {
				return
			}
		}
		m.list = append(m.list, Match{chunk, score})
	})
	if err != nil {
		return nil, err
	}
	m.named, err = named(lists, r.rareLimit(), n)
	return m, err
}

// from drops the ids below id.
func from(ids []int64, id int64) []int64 {
	for len(ids) > 0 && ids[0] < id {
		ids = ids[1:]
	}
	return ids
}

// count returns how many living chunks hold each term.
func (r *reader) count() (n map[string]int64, err error) {
	n = map[string]int64{}
	for i := range r.segments {
		l := &r.segments[i]
		if l.n, err = living(l, r.dead); err != nil {
			return nil, err
		}
		n[l.term] += l.n
	}
	for term, list := range r.fresh {
		n[term] += int64(len(list))
	}
	return n, nil
}

// weigh gives each list the weight of its term, and sums the weights of all terms
// of the question, those without a list too.
func (r *reader) weigh(n map[string]int64) (lists []list, possible float32) {
	weights := make(map[string]float32, len(r.terms))
	for _, term := range r.terms {
		weights[term] = float32(float64(r.counts[term]) * r.stats.idf(n[term]) * (k1 + 1))
		possible += weights[term]
	}
	for _, l := range r.segments {
		lists = append(lists, list{l.term, weights[l.term], l.data})
	}
	for _, term := range r.terms {
		if f := r.fresh[term]; len(f) > 0 {
			postings.Sort(f)
			lists = append(lists, list{term, weights[term], postings.Append(nil, f)})
		}
	}
	return lists, possible
}

// An identifier that more chunks hold than one in rareShare, and more than
// rareLeast, names no single thing.
const (
	rareLeast = 3
	rareShare = 1000
)

func (r *reader) rareLimit() int64 { return max(rareLeast, r.stats.chunks/rareShare) }

// named lists the chunks with an identifier that at most limit chunks hold.
func named(lists []list, limit int64, n map[string]int64) (map[int64]bool, error) {
	out := map[int64]bool{}
	for _, l := range lists {
		if n[l.term] > limit || !isIdentifier(l.term) {
			continue
		}
		r := postings.NewReader(l.data)
		for r.Next() {
			out[r.Chunk] = true
		}
		if err := r.Err(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// living counts the postings of a list without the dead.
func living(l *stored, dead []int64) (int64, error) {
	if len(dead) == 0 {
		return l.n, nil
	}
	n := int64(0)
	r := postings.NewReader(l.data)
	for r.Next() {
		if dead = from(dead, r.Chunk); len(dead) == 0 || dead[0] != r.Chunk {
			n++
		}
	}
	return n, r.Err()
}
