package ingest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// recipeVersion is raised when the road itself changes what is stored for the
// same bytes: extraction, what is embedded, or the terms of lexical search.
const recipeVersion = 3

// Config tunes a Pipeline.
type Config struct {
	// Collection is where the documents go.
	Collection string
	// Prune deletes stored documents below the given roots whose file is gone or
	// holds no text any more. Nothing outside the roots is touched, nor anything
	// below a folder that could not be listed.
	Prune bool
	// Sentences says whether each sentence gets a vector of its own.
	Sentences SentenceMode
	// States says whether the states of each chunk's tokens are kept, for late
	// interaction; the embedder must be a StateEmbedder.
	States bool
	// ParseTimeout bounds reading and cutting one document.
	ParseTimeout time.Duration
	// BatchTokens is the size of one call to the embedder.
	BatchTokens int
	// WindowTokens is how much is prepared before it is sorted by length and
	// embedded; about three windows are in memory, and never less than one document.
	WindowTokens int
	// ReuseBytes bounds the memory for vectors of texts embedded before in the
	// run, which are not embedded again; 0 keeps none from window to window.
	ReuseBytes int
	// Writers is the number of transactions at the same time.
	Writers int
}

// SentenceMode is how sentences are encoded.
type SentenceMode string

// The modes: each sentence as a passage of its own, or not at all.
const (
	SentencesApart SentenceMode = "apart"
	SentencesOff   SentenceMode = "off"
)

// DefaultConfig is what `ragd ingest` uses.
func DefaultConfig(collection string) Config {
	return Config{
		Collection: collection, Sentences: SentencesApart, ParseTimeout: time.Minute,
		BatchTokens: 4096, WindowTokens: 8192, ReuseBytes: 64 << 20, Writers: 2,
	}
}

// Validate says which setting makes no sense.
func (c Config) Validate() error {
	switch {
	case c.Collection == "":
		return fmt.Errorf("ingest: collection must have a name")
	case c.Sentences != SentencesApart && c.Sentences != SentencesOff:
		return fmt.Errorf("ingest: sentences must be %q or %q, got %q", SentencesApart, SentencesOff, c.Sentences)
	case c.ParseTimeout <= 0:
		return fmt.Errorf("ingest: parse timeout must be positive, got %v", c.ParseTimeout)
	case c.ReuseBytes < 0:
		return fmt.Errorf("ingest: reuse bytes must not be negative, got %d", c.ReuseBytes)
	case c.BatchTokens < 1, c.WindowTokens < 1, c.Writers < 1:
		return fmt.Errorf("ingest: batch tokens, window tokens and writers must be positive, got %d, %d and %d", c.BatchTokens, c.WindowTokens, c.Writers)
	}
	return nil
}

// Pipeline is the document road: source → chunk → encode → store.
type Pipeline struct {
	source   Source
	chunker  Chunker
	embedder Embedder
	store    Store
	config   Config
	observe  Observer
}

// New returns a pipeline. observe may be nil.
func New(source Source, chunker Chunker, embedder Embedder, store Store, c Config, observe Observer) (*Pipeline, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if _, ok := embedder.(StateEmbedder); c.States && !ok {
		return nil, fmt.Errorf("ingest: %w", ErrStates)
	}
	if observe == nil {
		observe = func(Progress) {}
	}
	return &Pipeline{source: source, chunker: chunker, embedder: embedder, store: store, config: c, observe: observe}, nil
}

// Recipe is the text under which documents are stored: another one makes them stale.
func (p *Pipeline) Recipe() string {
	return fmt.Sprintf("ingest/%d %s%s", recipeVersion, p.chunker.Recipe(), recipeEnd(p.embedder.Model(), p.config.Sentences, p.config.States))
}

// recipeEnd is the part of a recipe that speaks of the vectors.
func recipeEnd(model string, sentences SentenceMode, states bool) string {
	end := fmt.Sprintf("; %s; sentences %s", model, sentences)
	if states {
		end += "; token states"
	}
	return end
}

// Run walks the roots and brings the collection up to date. One document that
// cannot be read, cut, encoded or stored is named in the report and the rest
// goes on. The error is nil unless the run as a whole ended early: cancelled, or
// the store unavailable. Documents stored until then stay, and the report counts
// the others as remaining.
func (p *Pipeline) Run(ctx context.Context, roots []string) (Report, error) {
	r := &run{Pipeline: p, started: time.Now(), recipe: p.Recipe()}
	r.encoder = newEncoder(p.embedder, p.config, r.embedded)
	err := r.all(ctx, roots)
	return r.report(ctx.Err() != nil), err
}

// run is one pass over the roots.
type run struct {
	*Pipeline
	started time.Time
	recipe  string
	encoder encoder
	watches watches
	states  map[string]State
	listing Listing

	mu       sync.Mutex // guards what follows
	results  []FileResult
	pruned   []FileResult
	progress Progress
}

func (r *run) all(ctx context.Context, roots []string) error {
	if err := r.find(ctx, roots); err != nil {
		return err
	}
	windows := make(chan []*work, 1)
	encoded := make(chan *work, r.config.Writers)
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { defer close(windows); return r.read(gctx, windows) })
	g.Go(func() error { defer close(encoded); return r.encode(gctx, windows, encoded) })
	for range r.config.Writers {
		g.Go(func() error { return r.write(gctx, encoded) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("ingest stopped: %w", err)
	}
	if r.config.Prune {
		return r.prune(ctx)
	}
	return nil
}

// find reads what the store knows and lists the files.
func (r *run) find(ctx context.Context, roots []string) (err error) {
	if r.states, err = r.store.States(ctx, r.config.Collection); err != nil {
		return fmt.Errorf("ingest: what is stored: %w", err)
	}
	if r.listing, err = r.source.Find(ctx, roots); err != nil {
		return fmt.Errorf("ingest: walk: %w", err)
	}
	r.results = make([]FileResult, len(r.listing.Files))
	r.progress.Total = len(r.listing.Files)
	for i, f := range r.listing.Files {
		r.results[i] = FileResult{Path: f.Path, Status: Remaining}
		r.progress.TotalBytes += f.Size
	}
	return nil
}
