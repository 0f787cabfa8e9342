package store

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/jackc/pgx/v5"

	"ragd/ingest/postings"
)

const (
	// freshChunks is how many chunks gather in fresh rows, which every search
	// reads, before they become a segment.
	freshChunks = 512
	// fanIn is how many segments of about the same size become one. A posting is
	// so rewritten once for each factor of fanIn in the size of the collection.
	fanIn = 8
	// maxDead is how many dead chunks a search has to step over at the most.
	maxDead = 4096
	// maxFlush bounds the documents of one new segment.
	maxFlush = 4096
	// compactLock, xor the collection, is the advisory lock of the one merging
	// transaction: "ragdmrge" in ASCII.
	compactLock int64 = 0x726167646d726765
)

// compact keeps the lexical index of a collection in few pieces. Each step is one
// transaction, so a search sees the index before or after it, with the same
// content. Who comes while another compacts leaves the work to that one.
func (s *Store) compact(ctx context.Context, collection int64) error {
	for more := true; more; {
		err := write(ctx, s.pool, func(tx pgx.Tx) (err error) {
			more, err = compactStep(ctx, tx, collection)
			return err
		})
		if err != nil {
			return fmt.Errorf("done, but the lexical index could not be merged: %w", err)
		}
	}
	return nil
}

// compactStep does the most urgent piece of work and says whether it did any.
func compactStep(ctx context.Context, tx pgx.Tx, collection int64) (bool, error) {
	p, err := findPending(ctx, tx, collection)
	if err != nil || p.idle() {
		return false, err
	}
	var mine bool
	if err := tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", compactLock^collection).Scan(&mine); err != nil || !mine {
		return false, err
	}
	// Before the lock was taken, another may have done the work.
	if p, err = findPending(ctx, tx, collection); err != nil {
		return false, err
	}
	switch {
	case p.fresh >= freshChunks:
		return flush(ctx, tx, collection)
	case p.dead > maxDead:
		return mergeSegments(ctx, tx, collection, p.segments)
	case p.crowded != nil:
		return mergeSegments(ctx, tx, collection, p.crowded)
	}
	return false, nil
}

// pending is the state of a collection's lexical index.
type pending struct {
	fresh, dead int64     // chunks
	segments    []segment // the smallest first
	crowded     []segment // those that should be one; nil for none
}

func (p pending) idle() bool {
	return p.fresh < freshChunks && p.dead <= maxDead && p.crowded == nil
}

func findPending(ctx context.Context, tx pgx.Tx, collection int64) (p pending, err error) {
	err = tx.QueryRow(ctx, `
		SELECT (SELECT coalesce(sum(chunks), 0) FROM ragd.lexical_fresh WHERE collection_id = $1),
		       (SELECT count(*) FROM ragd.lexical_dead WHERE collection_id = $1)`, collection).Scan(&p.fresh, &p.dead)
	if err != nil {
		return p, err
	}
	rows, err := tx.Query(ctx, "SELECT id, chunks FROM ragd.lexical_segments WHERE collection_id = $1 ORDER BY chunks, id", collection)
	if err != nil {
		return p, err
	}
	p.segments, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (g segment, err error) {
		err = row.Scan(&g.id, &g.chunks)
		return g, err
	})
	p.crowded = crowdedTier(p.segments)
	return p, err
}

// segment is one merged part of the index.
type segment struct{ id, chunks int64 }

// crowdedTier returns the smallest fanIn segments that are of one size class, the
// powers of fanIn; nil when there are none.
func crowdedTier(segments []segment) []segment {
	tiers := map[int][]segment{}
	for _, g := range segments { // the smallest first
		tier := bits.Len64(uint64(g.chunks)) / bits.Len(fanIn-1)
		if tiers[tier] = append(tiers[tier], g); len(tiers[tier]) == fanIn {
			return tiers[tier]
		}
	}
	return nil
}

// flush makes a segment of the fresh rows. Rows that another transaction is
// removing are left to it.
func flush(ctx context.Context, tx pgx.Tx, collection int64) (bool, error) {
	rows, err := tx.Query(ctx, `
		SELECT document_id, chunks, terms FROM ragd.lexical_fresh
		WHERE collection_id = $1
		ORDER BY document_id LIMIT $2
		FOR UPDATE SKIP LOCKED`, collection, maxFlush)
	if err != nil {
		return false, err
	}
	lists := map[string][]postings.Posting{}
	var documents []int64
	var document, chunks, total int64
	var terms []byte
	_, err = pgx.ForEachRow(rows, []any{&document, &chunks, &terms}, func() error {
		documents, total = append(documents, document), total+chunks
		return postings.EachTerm(terms, func(term, list []byte) (err error) {
			lists[string(term)], err = postings.Decode(lists[string(term)], list)
			return err
		})
	})
	if err != nil || total < freshChunks {
		return false, err
	}
	if _, err := tx.Exec(ctx, "DELETE FROM ragd.lexical_fresh WHERE document_id = ANY($1)", documents); err != nil {
		return false, err
	}
	out, err := newSegment(ctx, tx, collection, total)
	if err != nil {
		return false, err
	}
	for _, term := range slices.Sorted(maps.Keys(lists)) {
		out.add(term, lists[term])
	}
	return true, out.write(ctx, tx)
}

// segmentWriter collects posting lists of a new segment.
type segmentWriter struct {
	id   int64
	rows [][]any
}

func newSegment(ctx context.Context, tx pgx.Tx, collection, chunks int64) (*segmentWriter, error) {
	w := &segmentWriter{}
	err := tx.QueryRow(ctx, "INSERT INTO ragd.lexical_segments (collection_id, chunks) VALUES ($1, $2) RETURNING id",
		collection, chunks).Scan(&w.id)
	return w, err
}

func (w *segmentWriter) add(term string, list []postings.Posting) {
	if len(list) == 0 {
		return
	}
	postings.Sort(list)
	w.rows = append(w.rows, []any{w.id, term, len(list), postings.Append(nil, list)})
}

// write stores what was added since the last write.
func (w *segmentWriter) write(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"ragd", "lexical_postings"},
		[]string{"segment_id", "term", "chunks", "list"}, pgx.CopyFromRows(w.rows))
	w.rows = w.rows[:0]
	return err
}
