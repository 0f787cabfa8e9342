package eval

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pgvector/pgvector-go"

	"ragd/ingest"
	"ragd/ingest/store"
)

// Inside looks into the database behind the stages.
type Inside struct {
	Pool   *pgxpool.Pool
	Tenant string
}

// paths names the document of each chunk of a collection.
func (i Inside) paths(ctx context.Context, collection string) (map[int64]string, error) {
	out := map[int64]string{}
	err := store.Read(ctx, i.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT c.id, d.path
			FROM ragd.collections l JOIN ragd.documents d ON d.collection_id = l.id JOIN ragd.chunks c ON c.document_id = d.id
			WHERE l.tenant = $1 AND l.name = $2`, i.Tenant, collection)
		if err != nil {
			return err
		}
		var id int64
		var path string
		_, err = pgx.ForEachRow(rows, []any{&id, &path}, func() error {
			out[id] = path
			return nil
		})
		return err
	})
	return out, err
}

// places says where each chunk of a collection lies in its document, and what it
// costs in the prompt.
func (i Inside) places(ctx context.Context, collection string, count func(string) int) (map[int64]shown, error) {
	out := map[int64]shown{}
	err := store.Read(ctx, i.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT c.id, d.path, c.heading, c.text, c.start_byte, c.end_byte
			FROM ragd.collections l JOIN ragd.documents d ON d.collection_id = l.id JOIN ragd.chunks c ON c.document_id = d.id
			WHERE l.tenant = $1 AND l.name = $2`, i.Tenant, collection)
		if err != nil {
			return err
		}
		var id int64
		var s shown
		var c ingest.Chunk
		_, err = pgx.ForEachRow(rows, []any{&id, &s.document, &c.Heading, &c.Text, &s.span.Start, &s.span.End}, func() error {
			s.tokens = count(c.EmbedText())
			out[id] = s
			return nil
		})
		return err
	})
	return out, err
}

// vectors gives the vector of each document's first chunk, by path.
func (i Inside) vectors(ctx context.Context, collection string) (map[string][]float32, error) {
	out := map[string][]float32{}
	err := store.Read(ctx, i.Pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT d.path, v.embedding
			FROM ragd.collections l JOIN ragd.documents d ON d.collection_id = l.id
			JOIN ragd.chunks c ON c.document_id = d.id AND c.ordinal = 0 JOIN ragd.vectors v ON v.chunk_id = c.id
			WHERE l.tenant = $1 AND l.name = $2`, i.Tenant, collection)
		if err != nil {
			return err
		}
		var path string
		var v pgvector.HalfVector
		_, err = pgx.ForEachRow(rows, []any{&path, &v}, func() error {
			out[path] = slices.Clone(v.Slice())
			return nil
		})
		return err
	})
	return out, err
}

// indexSize measures the merged lists of a collection.
func (i Inside) indexSize(ctx context.Context, collection string) (n IndexSize, err error) {
	var all int64
	err = i.Pool.QueryRow(ctx, `
		SELECT count(DISTINCT s.id), count(p.term), coalesce(sum(octet_length(p.list)), 0)::bigint,
		       (SELECT coalesce(sum(octet_length(list)), 0)::bigint FROM ragd.lexical_postings),
		       pg_total_relation_size('ragd.lexical_postings')
		FROM ragd.collections l JOIN ragd.lexical_segments s ON s.collection_id = l.id
		JOIN ragd.lexical_postings p ON p.segment_id = s.id
		WHERE l.tenant = $1 AND l.name = $2`, i.Tenant, collection).Scan(&n.Segments, &n.Lists, &n.Bytes, &all, &n.Disk)
	if all > 0 { // other collections' lists lie in the same table
		n.Disk = int64(float64(n.Disk) * float64(n.Bytes) / float64(all))
	}
	return n, err
}

// drop removes collections with all that is in them.
func (i Inside) drop(ctx context.Context, collections []string) {
	for _, stmt := range []string{
		"DELETE FROM ragd.lexical_fresh f USING ragd.collections c WHERE c.id = f.collection_id AND c.tenant = $1 AND c.name = ANY ($2)",
		"DELETE FROM ragd.vectors v USING ragd.collections c WHERE c.id = v.collection_id AND c.tenant = $1 AND c.name = ANY ($2)",
		"DELETE FROM ragd.collections WHERE tenant = $1 AND name = ANY ($2)",
	} {
		// What is left is only in the way, and named for what it is.
		_, _ = i.Pool.Exec(ctx, stmt, i.Tenant, collections)
	}
}
