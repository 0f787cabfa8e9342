package peer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"
)

// exactBelow is the number of chunks under which comparing with all of them is
// faster than an index; ragd's default is the same.
const exactBelow = 20_000

// layOut copies the collection into a temporary table with the indexes that a
// plain client would have. It goes with the connection.
func layOut(ctx context.Context, db *pgx.Conn, cfg Config) error {
	const table = "CREATE TEMP TABLE peer (id bigint, text text, embedding halfvec, words tsvector)"
	if _, err := db.Exec(ctx, table); err != nil {
		return fmt.Errorf("lay the chunks out: %w", err)
	}
	tag, err := db.Exec(ctx, `
		INSERT INTO peer SELECT c.id, c.text, v.embedding, to_tsvector('simple', c.text)
		FROM ragd.collections k JOIN ragd.vectors v ON v.collection_id = k.id AND v.model_id = k.model_id JOIN ragd.chunks c ON c.id = v.chunk_id
		WHERE k.tenant = $1 AND k.name = $2`, cfg.Tenant, cfg.Collection)
	if err != nil {
		return fmt.Errorf("lay the chunks out: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("collection %q holds no chunks", cfg.Collection)
	}
	statements := []string{"CREATE INDEX ON peer (id)", "CREATE INDEX ON peer USING gin (words)"}
	if tag.RowsAffected() >= exactBelow {
		var dim int
		if err := db.QueryRow(ctx, "SELECT vector_dims(embedding) FROM peer LIMIT 1").Scan(&dim); err != nil {
			return err
		}
		statements = append(statements,
			fmt.Sprintf("ALTER TABLE peer ALTER embedding TYPE halfvec(%d)", dim),
			"CREATE INDEX ON peer USING hnsw (embedding halfvec_cosine_ops)")
	}
	for _, sql := range append(statements, "ANALYZE peer") {
		if _, err := db.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// searchSQL takes the nearest and those that hold any of the words, and fuses them
// by reciprocal ranks (k = 60). It returns the text too, as a client needs it.
const searchSQL = `
	WITH near AS MATERIALIZED (
		SELECT id, embedding <=> $1 AS distance FROM peer ORDER BY embedding <=> $1 LIMIT $3),
	query AS (SELECT replace(plainto_tsquery('simple', $2)::text, ' & ', ' | ')::tsquery AS q),
	found AS MATERIALIZED (
		SELECT id, ts_rank_cd(words, q) AS rank FROM peer, query WHERE words @@ q ORDER BY rank DESC LIMIT $3),
	ranks AS (
		SELECT id, row_number() OVER (ORDER BY distance) AS r FROM near
		UNION ALL SELECT id, row_number() OVER (ORDER BY rank DESC) FROM found),
	fused AS (SELECT id, sum(1.0 / (60 + r)) AS score FROM ranks GROUP BY id ORDER BY score DESC LIMIT $4)
	SELECT p.id, p.text FROM fused JOIN peer p USING (id) ORDER BY fused.score DESC`

// presented is how many chunks the search returns with their text.
const presented = 20

func search(ctx context.Context, db *pgx.Conn, vector []float32, text string, candidates int) ([]int64, error) {
	rows, err := db.Query(ctx, searchSQL, pgvector.NewHalfVector(vector), text, candidates, presented)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (id int64, err error) {
		var text string
		return id, row.Scan(&id, &text)
	})
}
