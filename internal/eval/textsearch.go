package eval

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest"
	"ragd/retrieve/lexical"
)

// TextSearch names what PostgreSQL has by itself: ts_rank_cd over a GIN index.
const TextSearch = "ts_rank_cd"

// textSearch ranks by ts_rank_cd over the terms that BM25 ranks by, so that both find
// the same chunks and only the ranking and its index differ. The table lies beside
// ragd's own, in a schema that nothing else uses.
type textSearch struct {
	pool       *pgxpool.Pool
	collection string
	table      string
	index      string // the statement that makes it
}

// textBatch is how many chunks are read and stored together; grownChunks of them make
// one statement, as a document is one.
const textBatch = 1000

// textBulk: the index over more chunks is built when all are there, for one at a time
// it takes hours. What a chunk costs is then that of a bulk load.
const textBulk = 200_000

func openTextSearch(ctx context.Context, in Inside, collection string) (*textSearch, error) {
	var id int64
	err := in.Pool.QueryRow(ctx, "SELECT id FROM ragd.collections WHERE tenant = $1 AND name = $2", in.Tenant, collection).Scan(&id)
	if err != nil {
		return nil, err
	}
	t := &textSearch{pool: in.Pool, collection: collection, table: fmt.Sprintf("ragd_eval.words_%d", id)}
	t.index = fmt.Sprintf("CREATE INDEX IF NOT EXISTS words_%d_gin ON %s USING gin (words)", id, t.table)
	for _, stmt := range []string{
		"CREATE SCHEMA IF NOT EXISTS ragd_eval",
		fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (chunk_id bigint PRIMARY KEY, words tsvector NOT NULL)", t.table),
	} {
		if _, err := in.Pool.Exec(ctx, stmt); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// fill stores the terms of the chunks that are not there yet, of n in all, and returns
// the milliseconds a chunk took, without the analysis; 0 when all were there.
func (t *textSearch) fill(ctx context.Context, tenant string, n int, progress func(done int)) (float64, error) {
	var last int64
	if err := t.pool.QueryRow(ctx, "SELECT coalesce(max(chunk_id), 0) FROM "+t.table).Scan(&last); err != nil {
		return 0, err
	}
	if n <= textBulk {
		if _, err := t.pool.Exec(ctx, t.index); err != nil {
			return 0, err
		}
	}
	var spent time.Duration
	stored := 0
	for {
		ids, words, err := t.next(ctx, tenant, last)
		if err != nil {
			return 0, err
		}
		if len(ids) == 0 {
			break
		}
		start := time.Now()
		for i := 0; i < len(ids); i += grownChunks {
			end := min(i+grownChunks, len(ids))
			if _, err := t.pool.Exec(ctx, "INSERT INTO "+t.table+" SELECT * FROM unnest($1::bigint[], $2::text[]::tsvector[])", ids[i:end], words[i:end]); err != nil {
				return 0, err
			}
		}
		spent += time.Since(start)
		last, stored = ids[len(ids)-1], stored+len(ids)
		progress(stored)
	}
	start := time.Now()
	if _, err := t.pool.Exec(ctx, t.index); err != nil {
		return 0, err
	}
	if stored == 0 {
		return 0, nil
	}
	if _, err := t.pool.Exec(ctx, "VACUUM ANALYZE "+t.table); err != nil { // takes in what waits in the index's list
		return 0, err
	}
	return milliseconds(spent+time.Since(start)) / float64(stored), nil
}

// next reads chunks of the collection behind an id and turns their terms into tsvectors.
func (t *textSearch) next(ctx context.Context, tenant string, last int64) (ids []int64, words []string, err error) {
	rows, err := t.pool.Query(ctx, `
		SELECT c.id, c.heading, c.text
		FROM ragd.collections l JOIN ragd.documents d ON d.collection_id = l.id JOIN ragd.chunks c ON c.document_id = d.id
		WHERE l.tenant = $1 AND l.name = $2 AND c.id > $3 ORDER BY c.id LIMIT $4`, tenant, t.collection, last, textBatch)
	if err != nil {
		return nil, nil, err
	}
	var c ingest.Chunk
	_, err = pgx.ForEachRow(rows, []any{&c.ID, &c.Heading, &c.Text}, func() error {
		ids, words = append(ids, c.ID), append(words, vectorOf(lexical.Analyzer{}.Terms(c.EmbedText()), uint64(c.ID)))
		return nil
	})
	return ids, words, err
}

// vectorOf spells a tsvector. Terms are a bag, and ts_rank_cd wants places: they are
// drawn, which makes its order meaningless and its work the same.
func vectorOf(terms map[string]int, seed uint64) string {
	total := 0
	for _, n := range terms {
		total += n
	}
	places := rand.New(rand.NewPCG(seed, 1)).Perm(total)
	var b strings.Builder
	for _, term := range slices.Sorted(maps.Keys(terms)) {
		b.WriteString(lexeme(term))
		for i := range terms[term] {
			fmt.Fprintf(&b, "%c%d", ":,"[min(i, 1)], places[0]+1)
			places = places[1:]
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func lexeme(term string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(term) + "'"
}

// search finds the chunks that hold any term of a question.
func (t *textSearch) search(ctx context.Context, question string, limit int) (int, error) {
	terms := slices.Sorted(maps.Keys(lexical.Analyzer{}.Terms(question)))
	for i := range terms {
		terms[i] = lexeme(terms[i])
	}
	rows, err := t.pool.Query(ctx, `
		SELECT chunk_id, ts_rank_cd(words, q) AS rank FROM `+t.table+`, (SELECT $1::text::tsquery AS q) AS x
		WHERE words @@ q ORDER BY rank DESC, chunk_id LIMIT $2`, strings.Join(terms, " | "), limit)
	if err != nil {
		return 0, err
	}
	ids, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (id int64, err error) {
		var rank float32
		err = row.Scan(&id, &rank)
		return id, err
	})
	return len(ids), err
}

// bytes are those of table and indexes.
func (t *textSearch) bytes(ctx context.Context) (n int64, err error) {
	err = t.pool.QueryRow(ctx, "SELECT pg_total_relation_size($1::regclass)", t.table).Scan(&n)
	return n, err
}
