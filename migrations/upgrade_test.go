package migrations_test

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"ragd/migrations"
)

// A database of the first version, with a document in it, goes through the
// migrations after it and back.
func TestUpgradeKeepsDocuments(t *testing.T) {
	pool := fresh(t, "upgrade")
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("."),
		goose.WithTableName("ragd.goose_db_version"), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.DownTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, stmt := range []string{
		"INSERT INTO ragd.collections (tenant, name) VALUES ('t', 'c')",
		"INSERT INTO ragd.models (name, dim) VALUES ('m', 2)",
		`INSERT INTO ragd.documents (collection_id, path, title, hash, recipe, type, charset, charset_guessed, bytes, metadata, chunks)
		 VALUES (1, 'p', 'P', 'h', 'r', 'text/plain', 'utf-8', false, 1, '{}', 1)`,
		`INSERT INTO ragd.chunks (document_id, ordinal, heading, text, start_byte, end_byte, page, tokens, sentence_spans)
		 VALUES (1, 0, '{}', 'x', 0, 1, 0, 1, '{}')`,
		"INSERT INTO ragd.vectors VALUES (1, 1, 1, 1, '[1,0]')",
		"INSERT INTO ragd.collection_models VALUES (1, 1, 1)",
		"UPDATE ragd.chunks SET sentence_vectors = 'abc'",
	} {
		exec(t, pool, stmt)
	}
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	var chunks, counted, terms, length int64
	var model, sentences string
	err = pool.QueryRow(t.Context(), `
		SELECT n.chunks, l.chunks, l.terms, c.terms, m.name, encode(s.vectors, 'escape')
		FROM ragd.collection_models n, ragd.lexical_counts l, ragd.chunks c, ragd.collections x JOIN ragd.models m ON m.id = x.model_id,
		     ragd.sentence_vectors s WHERE s.chunk_id = c.id AND s.model_id = m.id`).Scan(&chunks, &counted, &terms, &length, &model, &sentences)
	if err != nil || chunks != 1 || counted != 1 || terms != 0 || length != 0 || model != "m" || sentences != "abc" {
		t.Errorf("%d vectors, %d chunks, %d terms, length %d, model %q, sentences %q (%v)", chunks, counted, terms, length, model, sentences, err)
	}
}
