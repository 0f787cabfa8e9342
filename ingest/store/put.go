package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ragd/ingest"
	"ragd/ingest/postings"
)

// Put implements ingest.Store. A document that PostgreSQL can never hold gives
// ErrInvalid; zero bytes in texts are replaced by spaces.
func (s *Store) Put(ctx context.Context, collection, model, recipe string, e ingest.Encoded) (changed bool, err error) {
	if err := validate(&e); err != nil {
		return false, err
	}
	changed, err = s.put(ctx, collection, model, recipe, &e)
	if err != nil {
		return false, fmt.Errorf("store %s: %w", e.Document.Path, err)
	}
	return changed, nil
}

func (s *Store) put(ctx context.Context, collection, model, recipe string, e *ingest.Encoded) (changed bool, err error) {
	w := writer{recipe: recipe, e: e, terms: make([]map[string]int, len(e.Chunks))}
	for i := range e.Chunks {
		w.terms[i] = s.analyzer.Terms(e.Chunks[i].EmbedText())
	}
	// Collection and model get their own transactions: a long one that holds
	// them could wait for another that needs them.
	if w.collection, err = s.ensureCollection(ctx, collection); err != nil {
		return false, err
	}
	if len(e.Vectors) > 0 {
		if w.model, err = s.ensureModel(ctx, model, len(e.Vectors[0])); err != nil {
			return false, err
		}
		if err := s.claim(ctx, w.collection, w.model); err != nil {
			return false, err
		}
	}
	err = write(ctx, s.pool, func(tx pgx.Tx) error {
		changed, err = w.put(ctx, tx)
		return err
	})
	if err != nil || !changed {
		return false, err
	}
	if err = s.compact(ctx, w.collection); err == nil && w.model != 0 {
		_, err = s.ensureIndex(ctx, w.collection, w.model)
	}
	if ctx.Err() != nil || errors.Is(err, ErrUnavailable) {
		return true, nil // it is stored; the next writer merges
	}
	return true, err
}

// writer puts one document.
type writer struct {
	collection int64
	model      int32
	recipe     string
	e          *ingest.Encoded
	terms      []map[string]int // one a chunk
	document   int64
}

// put replaces the document unless it is there as it is. The advisory lock makes
// writers of the same path wait for each other even before there is a row to lock.
func (w *writer) put(ctx context.Context, tx pgx.Tx) (changed bool, err error) {
	d := &w.e.Document
	if w.model != 0 {
		if err := holdModel(ctx, tx, w.collection, w.model); err != nil {
			return false, err
		}
	}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($2, $1))", w.collection, d.Path); err != nil {
		return false, err
	}
	var id int64
	var hash, recipe string
	err = tx.QueryRow(ctx, `
		SELECT id, hash, recipe FROM ragd.documents
		WHERE collection_id = $1 AND path = $2 FOR UPDATE`, w.collection, d.Path).Scan(&id, &hash, &recipe)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		err = w.insertDocument(ctx, tx)
	case err != nil:
	case hash == d.Hash && recipe == w.recipe:
		return false, nil
	default:
		w.document = id
		err = w.updateDocument(ctx, tx)
	}
	if err != nil {
		return false, err
	}
	return true, w.replaceChunks(ctx, tx)
}

func (w *writer) documentArgs() pgx.NamedArgs {
	d := &w.e.Document
	var modified *time.Time
	if !d.Modified.IsZero() {
		modified = &d.Modified
	}
	return pgx.NamedArgs{
		"id": w.document, "collection": w.collection, "path": d.Path, "title": clean(d.Title),
		"hash": clean(d.Hash), "recipe": clean(w.recipe), "type": clean(d.Type), "charset": clean(d.Charset),
		"guessed": d.CharsetGuessed, "bytes": d.Bytes, "modified": modified,
		"metadata": cleanMetadata(d.Metadata), "chunks": len(w.e.Chunks),
	}
}

func (w *writer) insertDocument(ctx context.Context, tx pgx.Tx) error {
	return tx.QueryRow(ctx, `
		INSERT INTO ragd.documents (collection_id, path, title, hash, recipe, type, charset, charset_guessed,
		                            bytes, modified, metadata, chunks)
		VALUES (@collection, @path, @title, @hash, @recipe, @type, @charset, @guessed, @bytes, @modified, @metadata, @chunks)
		RETURNING id`, w.documentArgs()).Scan(&w.document)
}

func (w *writer) updateDocument(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `
		UPDATE ragd.documents
		SET title = @title, hash = @hash, recipe = @recipe, type = @type, charset = @charset,
		    charset_guessed = @guessed, bytes = @bytes, modified = @modified, metadata = @metadata,
		    chunks = @chunks, updated = now()
		WHERE id = @id`, w.documentArgs())
	return err
}

// replaceChunks puts the new chunks in the place of the old ones and keeps the
// counters in step.
func (w *writer) replaceChunks(ctx context.Context, tx pgx.Tx) error {
	delta, err := removeChunks(ctx, tx, []int64{w.document})
	if err != nil {
		return err
	}
	if n := len(w.e.Chunks); n > 0 {
		if err := w.copyChunks(ctx, tx); err != nil {
			return err
		}
		sum := size{chunks: int64(n)}
		for _, counts := range w.terms {
			sum.terms += int64(postings.Length(counts))
		}
		delta.addWords(w.collection, sum)
		delta.addVectors(w.collection, w.model, int64(n))
	}
	return delta.apply(ctx, tx)
}

// copyChunks loads chunks and vectors with COPY under ids drawn beforehand, which
// rise, and puts their terms into the lexical index.
func (w *writer) copyChunks(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT nextval(pg_get_serial_sequence('ragd.chunks', 'id')) FROM generate_series(1, $1)`, len(w.e.Chunks))
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"ragd", "chunks"},
		[]string{"id", "document_id", "ordinal", "heading", "text", "start_byte", "end_byte", "page", "tokens", "sentence_spans", "terms"},
		pgx.CopyFromSlice(len(ids), func(i int) ([]any, error) {
			c := &w.e.Chunks[i]
			return []any{
				ids[i], w.document, c.Ordinal, cleanAll(c.Heading), clean(c.Text), c.Start, c.End, c.Page, c.Tokens,
				packSpans(c.Sentences), postings.Length(w.terms[i]),
			}, nil
		}))
	if err != nil {
		return err
	}
	vectors := make([]vectorRow, len(ids))
	for i, id := range ids {
		vectors[i] = vectorRow{chunk: id, document: w.document, vector: w.e.Vectors[i]}
		if w.e.Sentences != nil {
			vectors[i].sentences = append([][]float32{}, w.e.Sentences[i]...)
		}
		if w.e.States != nil {
			vectors[i].states = w.e.States[i]
		}
	}
	if err := copyVectors(ctx, tx, w.collection, w.model, vectors); err != nil {
		return err
	}
	return w.addPostings(ctx, tx, ids)
}
