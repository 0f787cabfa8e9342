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
	} {
		exec(t, pool, stmt)
	}
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	var chunks, terms, length int64
	err = pool.QueryRow(t.Context(), `
		SELECT m.chunks, m.terms, c.terms FROM ragd.collection_models m, ragd.chunks c`).Scan(&chunks, &terms, &length)
	if err != nil || chunks != 1 || terms != 0 || length != 0 {
		t.Errorf("%d chunks, %d terms, length %d (%v)", chunks, terms, length, err)
	}
}
