package lexical

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"ragd/ingest/postings"
	"ragd/retrieve/internal/filter"
)

// ofSegments is the condition for the collections' merged lists.
const ofSegments = `p.segment_id = ANY (ARRAY(SELECT s.id FROM ragd.lexical_segments s WHERE s.collection_id = ANY ($1)))
	AND p.term = ANY ($2)`

// chooseTerms keeps the rarest terms that the collection's segments hold, and
// those they do not hold, when there are too many.
func (r *reader) chooseTerms(ctx context.Context) error {
	if len(r.terms) <= maxTerms {
		return nil
	}
	rows, err := r.tx.Query(ctx, `
		SELECT p.term, sum(p.chunks)::bigint FROM ragd.lexical_postings p WHERE `+ofSegments+` GROUP BY 1`, r.collections, r.terms)
	if err != nil {
		return err
	}
	n := map[string]int64{}
	var term string
	var chunks int64
	if _, err := pgx.ForEachRow(rows, []any{&term, &chunks}, func() error {
		n[term] = chunks
		return nil
	}); err != nil {
		return err
	}
	slices.SortStableFunc(r.terms, func(a, b string) int { return cmp.Compare(n[a], n[b]) })
	// Terms that no segment holds cost nothing there: they do not count.
	known := slices.IndexFunc(r.terms, func(t string) bool { return n[t] > 0 })
	if known >= 0 && known+maxTerms < len(r.terms) {
		r.terms = r.terms[:known+maxTerms]
	}
	slices.Sort(r.terms)
	return nil
}

// read fetches everything that the scores depend on in one exchange. Ids come as one
// array: a filter may leave most of the chunks, and a row for each would take longer
// than the search.
func (r *reader) read(ctx context.Context, where filter.Filter) error {
	batch := &pgx.Batch{}
	batch.Queue("SELECT p.term, p.chunks, p.list FROM ragd.lexical_postings p WHERE "+ofSegments, r.collections, r.terms).
		Query(func(rows pgx.Rows) (err error) {
			r.segments, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l stored, err error) {
				err = row.Scan(&l.term, &l.n, &l.data)
				return l, err
			})
			return err
		})
	batch.Queue("SELECT terms FROM ragd.lexical_fresh WHERE collection_id = ANY ($1)", r.collections).Query(r.readFresh)
	batch.Queue("SELECT array_agg(chunk_id ORDER BY chunk_id) FROM ragd.lexical_dead WHERE collection_id = ANY ($1)", r.collections).
		QueryRow(func(row pgx.Row) error { return row.Scan(&r.dead) })
	if r.filtered = where.SQL != ""; r.filtered {
		args := pgx.NamedArgs{"collections": r.collections}
		maps.Copy(args, where.Args)
		batch.Queue(`
			SELECT array_agg(c.id ORDER BY c.id) FROM ragd.documents d JOIN ragd.chunks c ON c.document_id = d.id
			WHERE d.collection_id = ANY (@collections) AND `+where.SQL, args).
			QueryRow(func(row pgx.Row) error { return row.Scan(&r.passing) })
	}
	return r.tx.SendBatch(ctx, batch).Close()
}

// readFresh takes the question's terms out of the documents that no segment holds
// yet. Both are in byte order, so they are walked side by side.
func (r *reader) readFresh(rows pgx.Rows) error {
	r.fresh = map[string][]postings.Posting{}
	var data []byte
	_, err := pgx.ForEachRow(rows, []any{&data}, func() error {
		wanted := r.terms
		return postings.EachTerm(data, func(term, list []byte) (err error) {
			for len(wanted) > 0 && wanted[0] < string(term) {
				wanted = wanted[1:]
			}
			if len(wanted) > 0 && wanted[0] == string(term) {
				r.fresh[wanted[0]], err = postings.Decode(r.fresh[wanted[0]], list)
			}
			return err
		})
	})
	return err
}
