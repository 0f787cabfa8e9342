package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrTimeout: a document took longer to read than is allowed.
var ErrTimeout = errors.New("reading took too long")

// work is one document on its way. Only the stage that holds it touches it.
type work struct {
	file    int // index in the listing
	encoded Encoded
	tokens  int // given to the embedder so far
	failed  error
}

// windowDocuments bounds a window of very short documents.
const windowDocuments = 512

// rampWindow is the size of the first window as a part of WindowTokens. Each next
// one is twice as long: the first documents are stored soon, and a run that is
// interrupted early loses little.
const rampWindow = 16

// read loads, extracts and cuts the files in their order and hands them on in
// windows. Unchanged files end here: only their hash is computed.
func (r *run) read(ctx context.Context, windows chan<- []*work) error {
	var window []*work
	tokens, full := 0, r.config.WindowTokens/rampWindow
	for i := range r.listing.Files {
		w, err := r.readFile(ctx, i)
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		window = append(window, w)
		for _, c := range w.encoded.Chunks {
			tokens += c.Tokens
		}
		if tokens >= full || len(window) >= windowDocuments {
			if err := send(ctx, windows, window); err != nil {
				return err
			}
			window, tokens, full = nil, 0, min(2*full+1, r.config.WindowTokens)
		}
	}
	if len(window) == 0 {
		return nil
	}
	return send(ctx, windows, window)
}

func send[T any](ctx context.Context, to chan<- T, v T) error {
	select {
	case to <- v:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readFile returns nil when the file is settled: unchanged, skipped or failed.
// Its error is a cancelled context's.
func (r *run) readFile(ctx context.Context, i int) (*work, error) {
	f := r.listing.Files[i]
	r.starting(f.Path)
	start := time.Now()
	raw, err := r.source.Load(ctx, f)
	r.watches.read.since(start)
	if err == nil && r.states[f.Path] == (State{Hash: raw.Hash, Recipe: r.recipe}) {
		r.settle(i, FileResult{Status: Unchanged})
		return nil, ctx.Err()
	}
	var e Encoded
	if err == nil {
		e, err = guard(ctx, r.config.ParseTimeout, func(ctx context.Context) (Encoded, error) { return r.cut(ctx, raw) })
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		r.settle(i, failure(e.Document, err))
		return nil, nil
	}
	return &work{file: i, encoded: e}, nil
}

// cut turns a file's bytes into a document and its chunks.
func (r *run) cut(ctx context.Context, raw Raw) (e Encoded, err error) {
	start := time.Now()
	e.Document, err = r.source.Extract(ctx, raw)
	r.watches.read.since(start)
	if err != nil {
		return e, err
	}
	start = time.Now()
	e.Chunks, err = r.chunker.Chunk(&e.Document)
	r.watches.chunk.since(start)
	if err != nil {
		return e, err
	}
	if len(e.Chunks) == 0 {
		return e, fmt.Errorf("%w below the headings", ErrEmpty)
	}
	return e, nil
}

// guard runs a parser under a deadline and turns its panic into an error, so
// that one hostile file costs no more than itself. A parser that does not return
// in time is left behind; its result is dropped.
func guard[T any](ctx context.Context, limit time.Duration, parse func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w: more than %v", ErrTimeout, limit))
	defer cancel()
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("parser failed: %v", p)
			}
			done <- r
		}()
		r.value, r.err = parse(ctx)
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
