package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest"
)

// reembedLock, xor the collection, is held by the one who embeds a collection anew:
// "ragdremb" in ASCII.
const reembedLock int64 = 0x7261676472656d62

// ErrReembedding: another run embeds the collection anew.
var ErrReembedding = errors.New("another reembed of this collection is running")

// Reembedding implements ingest.Revising. It holds a lock and a connection until
// it is closed.
type Reembedding struct {
	s          *Store
	collection int64
	model      int32
	from       string
	states     bool // token states are wanted, too
	conn       *pgxpool.Conn
	unlock     func()
	held       bool // writers wait
}

var _ ingest.Revising = (*Reembedding)(nil)

// Reembed begins to embed a collection anew, or goes on with it. With states, a chunk
// is done when the states of its tokens are there too.
func (s *Store) Reembed(ctx context.Context, collection, model string, dim int, states bool) (*Reembedding, error) {
	r := &Reembedding{s: s, states: states}
	err := Read(ctx, s.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			SELECT c.id, coalesce(m.name, '') FROM ragd.collections c LEFT JOIN ragd.models m ON m.id = c.model_id
			WHERE c.tenant = $1 AND c.name = $2`, s.tenant, clean(collection)).Scan(&r.collection, &r.from)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, &ingest.NoCollectionError{Name: collection}
	}
	if err == nil {
		r.model, err = s.ensureModel(ctx, model, dim)
	}
	if err == nil {
		err = r.lock(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("reembed %s: %w", collection, err)
	}
	return r, nil
}

func (r *Reembedding) lock(ctx context.Context) (err error) {
	if r.conn, err = r.s.pool.Acquire(ctx); err != nil {
		return err
	}
	unlock, ok, err := lockSession(ctx, r.conn, reembedLock^r.collection)
	if err == nil && !ok {
		err = ErrReembedding
	}
	if err != nil {
		r.conn.Release()
		return err
	}
	r.unlock = unlock
	return nil
}

// Close lets others embed the collection.
func (r *Reembedding) Close() {
	r.unlock()
	r.conn.Release()
}

// From is the model that answers at the start, "" for none.
func (r *Reembedding) From() string { return r.from }

// Count implements ingest.Revising.
func (r *Reembedding) Count(ctx context.Context) (done, of int64, err error) {
	err = Read(ctx, r.s.pool, func(tx pgx.Tx) error {
		done, of, err = r.count(ctx, tx)
		return err
	})
	return done, of, err
}

func (r *Reembedding) count(ctx context.Context, tx pgx.Tx) (done, of int64, err error) {
	// A chunk never has states without vectors.
	have := "coalesce((SELECT chunks FROM ragd.collection_models WHERE collection_id = $1 AND model_id = $2), 0)"
	if r.states {
		have = "(SELECT count(*) FROM ragd.token_states WHERE collection_id = $1 AND model_id = $2)"
	}
	err = tx.QueryRow(ctx, "SELECT "+have+`,
		       coalesce((SELECT chunks FROM ragd.lexical_counts WHERE collection_id = $1), 0)`, r.collection, r.model).Scan(&done, &of)
	return done, of, err
}

// missing is the condition of a chunk c that lacks what is wanted of the model $2.
func (r *Reembedding) missing() string {
	out := "NOT EXISTS (SELECT FROM ragd.vectors v WHERE v.chunk_id = c.id AND v.model_id = $2)"
	if r.states {
		// Every chunk with states has vectors, too.
		out = "NOT EXISTS (SELECT FROM ragd.token_states t WHERE t.chunk_id = c.id AND t.model_id = $2)"
	}
	return out
}

// Stale implements ingest.Revising.
func (r *Reembedding) Stale(ctx context.Context, after int64, limit int) (list []ingest.Stale, err error) {
	err = Read(ctx, r.s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT d.id, d.path, c.id, c.heading, c.text, c.sentence_spans,
			       EXISTS (SELECT FROM ragd.vectors v WHERE v.chunk_id = c.id AND v.model_id = $2)
			FROM ragd.chunks c JOIN ragd.documents d ON d.id = c.document_id
			WHERE d.collection_id = $1 AND c.id > $3 AND `+r.missing()+`
			ORDER BY c.id LIMIT $4`, r.collection, r.model, after, limit)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s ingest.Stale, err error) {
			var spans []int32
			err = row.Scan(&s.Document, &s.Path, &s.Chunk.ID, &s.Chunk.Heading, &s.Chunk.Text, &spans, &s.StatesOnly)
			s.Chunk.Sentences = unpackSpans(spans)
			return s, err
		})
		return err
	})
	return list, err
}

// Add implements ingest.Revising. The documents are locked first, in the order of
// ids, so that none is replaced or deleted halfway.
func (r *Reembedding) Add(ctx context.Context, list []ingest.Revision) error {
	documents := make([]int64, len(list))
	byChunk := make(map[int64]ingest.Revision, len(list))
	chunks := make([]int64, len(list))
	for i, v := range list {
		documents[i], chunks[i], byChunk[v.Chunk] = v.Document, v.Chunk, v
		if err := validateVector(v.Vector, len(v.Vector)); err != nil {
			return fmt.Errorf("%w: chunk %d: %w", ErrInvalid, v.Chunk, err)
		}
	}
	return write(ctx, r.s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT FROM ragd.documents WHERE id = ANY ($1) ORDER BY id FOR SHARE", documents); err != nil {
			return err
		}
		there, err := r.lacking(ctx, tx, chunks)
		if err != nil {
			return err
		}
		var vectors, known []vectorRow
		for _, c := range there {
			v := byChunk[c.id]
			row := vectorRow{chunk: c.id, document: v.Document, vector: v.Vector, sentences: v.Sentences, states: v.States}
			if c.known {
				known = append(known, row)
				continue
			}
			vectors = append(vectors, row)
		}
		if err := copyVectors(ctx, tx, r.collection, r.model, vectors); err != nil {
			return err
		}
		if err := copyStates(ctx, tx, r.collection, r.model, known); err != nil {
			return err
		}
		d := newDelta()
		d.addVectors(r.collection, r.model, int64(len(vectors)))
		return d.apply(ctx, tx)
	})
}

// lacks is a chunk that lacks something; known says that its vectors are there.
type lacks struct {
	id    int64
	known bool
}

// lacking lists those of the chunks that are there and lack something.
func (r *Reembedding) lacking(ctx context.Context, tx pgx.Tx, chunks []int64) ([]lacks, error) {
	rows, err := tx.Query(ctx, `
		SELECT c.id, EXISTS (SELECT FROM ragd.vectors v WHERE v.chunk_id = c.id AND v.model_id = $2)
		FROM ragd.chunks c WHERE c.id = ANY ($1) AND `+r.missing()+`
		ORDER BY c.id`, chunks, r.model)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (l lacks, err error) {
		err = row.Scan(&l.id, &l.known)
		return l, err
	})
}

// Hold implements ingest.Revising.
func (r *Reembedding) Hold(ctx context.Context) (release func(), err error) {
	if _, err := r.conn.Exec(ctx, "SELECT pg_advisory_lock($1)", activeLock^r.collection); err != nil {
		return nil, err
	}
	r.held = true
	unlock := unlocker(ctx, r.conn, activeLock^r.collection)
	return func() { r.held = false; unlock() }, nil
}

// indexWait is how long to wait for another who builds an index.
const indexWait = 200 * time.Millisecond

// awaitIndex makes sure that a large collection has its index. Building waits for
// writers, so it is no time for it while they wait.
func (r *Reembedding) awaitIndex(ctx context.Context) error {
	for !r.held {
		if built, err := r.s.ensureIndex(ctx, r.collection, r.model); err != nil || built {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(indexWait):
		}
	}
	return nil
}

// Switch implements ingest.Revising. A large collection first gets its index. The
// switch itself holds up writers for a moment, and no reader.
func (r *Reembedding) Switch(ctx context.Context, renew func(string) string) (switched bool, err error) {
	if err := r.awaitIndex(ctx); err != nil {
		return false, err
	}
	err = pgx.BeginFunc(ctx, r.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", activeLock^r.collection); err != nil {
			return err
		}
		if done, of, err := r.count(ctx, tx); err != nil || done != of {
			return err
		}
		switched = true
		if _, err := tx.Exec(ctx, "UPDATE ragd.collections SET model_id = $2 WHERE id = $1", r.collection, r.model); err != nil {
			return err
		}
		return r.renewRecipes(ctx, tx, renew)
	})
	return switched && err == nil, err
}

// renewRecipes locks the documents in the order of ids, as all do who take several.
func (r *Reembedding) renewRecipes(ctx context.Context, tx pgx.Tx, renew func(string) string) error {
	rows, err := tx.Query(ctx, "SELECT DISTINCT recipe FROM ragd.documents WHERE collection_id = $1", r.collection)
	if err != nil {
		return err
	}
	recipes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var old, renewed []string
	for _, recipe := range recipes {
		if to := clean(renew(recipe)); to != recipe {
			old, renewed = append(old, recipe), append(renewed, to)
		}
	}
	if len(old) == 0 {
		return nil
	}
	_, err = tx.Exec(ctx, `
		WITH held AS MATERIALIZED (
			SELECT id FROM ragd.documents WHERE collection_id = $1 AND recipe = ANY ($2) ORDER BY id FOR UPDATE)
		UPDATE ragd.documents d SET recipe = r.renewed
		FROM held, unnest($2::text[], $3::text[]) AS r (old, renewed)
		WHERE d.id = held.id AND d.recipe = r.old`, r.collection, old, renewed)
	return err
}

// cleanDocuments is how many documents lose their old vectors at a time.
const cleanDocuments = 256

// Clean implements ingest.Revising: the indexes of other models go, then their
// vectors, some documents at a time.
func (r *Reembedding) Clean(ctx context.Context) error {
	var left bool
	err := r.conn.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM ragd.collection_models WHERE collection_id = $1 AND model_id <> $2 AND chunks > 0)`,
		r.collection, r.model).Scan(&left)
	if err != nil || !left {
		return err
	}
	rows, err := r.conn.Query(ctx, "SELECT model_id FROM ragd.collection_models WHERE collection_id = $1 AND model_id <> $2", r.collection, r.model)
	if err != nil {
		return err
	}
	models, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return err
	}
	for _, m := range models {
		if err := dropIndex(ctx, r.conn, r.collection, m); err != nil {
			return err
		}
	}
	for last := int64(0); last >= 0; {
		if last, err = r.cleanSome(ctx, last); err != nil {
			return err
		}
	}
	return nil
}

// cleanSome returns the last document that it cleaned, -1 when there are no more.
func (r *Reembedding) cleanSome(ctx context.Context, after int64) (last int64, err error) {
	err = write(ctx, r.s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT id FROM ragd.documents WHERE collection_id = $1 AND id > $2 ORDER BY id LIMIT $3 FOR SHARE`,
			r.collection, after, cleanDocuments)
		if err != nil {
			return err
		}
		documents, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		if last = -1; len(documents) == 0 {
			return nil
		}
		last = documents[len(documents)-1]
		d := newDelta()
		if err := removeVectors(ctx, tx, d, documents, r.model); err != nil {
			return err
		}
		return d.apply(ctx, tx)
	})
	return last, err
}
