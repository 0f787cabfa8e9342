package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ragd/ingest/postings"
)

// mergeBatch is how many posting lists are in memory at a time.
const mergeBatch = 4096

// mergeSegments makes one segment of several and leaves the dead chunks out. It
// says whether the index has fewer pieces or fewer dead for it.
func mergeSegments(ctx context.Context, tx pgx.Tx, collection int64, from []segment) (bool, error) {
	dead, err := deadChunks(ctx, tx, collection)
	if err != nil {
		return false, err
	}
	ids := make([]int64, len(from))
	var total int64
	for i, g := range from {
		ids[i], total = g.id, total+g.chunks
	}
	out, err := newSegment(ctx, tx, collection, total)
	if err != nil {
		return false, err
	}
	m := merger{dead: dead, met: make([]bool, len(dead)), out: out}
	if err := m.run(ctx, tx, ids); err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, "DELETE FROM ragd.lexical_segments WHERE id = ANY($1)", ids); err != nil {
		return false, err
	}
	buried, err := m.bury(ctx, tx, collection)
	return len(from) > 1 || buried > 0, err
}

func deadChunks(ctx context.Context, tx pgx.Tx, collection int64) ([]int64, error) {
	rows, err := tx.Query(ctx, "SELECT chunk_id FROM ragd.lexical_dead WHERE collection_id = $1 ORDER BY chunk_id", collection)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// merger puts together the lists of each term, which come one after the other.
type merger struct {
	dead []int64 // rising
	met  []bool  // which of them had postings here
	out  *segmentWriter

	term string
	list []postings.Posting
}

func (m *merger) run(ctx context.Context, tx pgx.Tx, segments []int64) error {
	_, err := tx.Exec(ctx, `
		DECLARE lists NO SCROLL CURSOR FOR
		SELECT term, list FROM ragd.lexical_postings WHERE segment_id = ANY($1) ORDER BY term`, segments)
	if err != nil {
		return err
	}
	for {
		n, err := m.fetch(ctx, tx)
		if err != nil {
			return err
		}
		if n == 0 {
			m.out.add(m.term, m.list)
		}
		if err := m.out.write(ctx, tx); err != nil {
			return err
		}
		if n == 0 {
			_, err := tx.Exec(ctx, "CLOSE lists")
			return err
		}
	}
}

// fetch takes in the next lists and returns how many there were.
func (m *merger) fetch(ctx context.Context, tx pgx.Tx) (int64, error) {
	rows, err := tx.Query(ctx, fmt.Sprintf("FETCH %d FROM lists", mergeBatch))
	if err != nil {
		return 0, err
	}
	var term string
	var list []byte
	tag, err := pgx.ForEachRow(rows, []any{&term, &list}, func() error {
		if term != m.term {
			m.out.add(m.term, m.list)
			m.term, m.list = term, m.list[:0]
		}
		return m.take(list)
	})
	return tag.RowsAffected(), err
}

// take adds the postings of the living.
func (m *merger) take(list []byte) error {
	i := 0
	r := postings.NewReader(list)
	for r.Next() {
		for i < len(m.dead) && m.dead[i] < r.Chunk {
			i++
		}
		if i < len(m.dead) && m.dead[i] == r.Chunk {
			m.met[i] = true
			continue
		}
		m.list = append(m.list, r.Posting)
	}
	return r.Err()
}

// bury forgets the dead chunks that no list holds any more and counts them.
func (m *merger) bury(ctx context.Context, tx pgx.Tx, collection int64) (int, error) {
	var gone []int64
	for i, id := range m.dead {
		if m.met[i] {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return 0, nil
	}
	if _, err := tx.Exec(ctx, "DELETE FROM ragd.lexical_dead WHERE collection_id = $1 AND chunk_id = ANY($2)", collection, gone); err != nil {
		return 0, err
	}
	_, err := tx.Exec(ctx, "UPDATE ragd.lexical_segments SET chunks = greatest(chunks - $2, 1) WHERE id = $1", m.out.id, len(gone))
	return len(gone), err
}
