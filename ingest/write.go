package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// finishGrace is how long a document that is being stored may go on after the run
// was cancelled. A commit that is cut off may have happened or not.
const finishGrace = 5 * time.Second

// finishing returns a context that outlives ctx by the grace.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(finishGrace, cancel) })
	return out, cancel
}

// write stores documents, one transaction each. An unavailable store ends the
// run, and so does a collection of another model; any other error fails the document. A cancelled run finishes the document
// in hand, so that the report tells exactly what is stored.
func (r *run) write(ctx context.Context, encoded <-chan *work) error {
	storing, cancel := finishing(ctx)
	defer cancel()
	for w := range encoded {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		start := time.Now()
		changed, err := r.store.Put(storing, r.config.Collection, r.embedder.Model(), r.recipe, w.encoded)
		r.watches.store.since(start)
		switch {
		case ctx.Err() != nil && err != nil:
			return ctx.Err()
		case errors.Is(err, ErrUnavailable), errors.Is(err, ErrModel):
			return err
		case err != nil:
			r.settle(w.file, failure(w.encoded.Document, err))
		case !changed: // another run stored it meanwhile
			r.settle(w.file, FileResult{Status: Unchanged})
		default:
			r.settle(w.file, success(w))
		}
	}
	return ctx.Err()
}

// prune deletes the stored documents below the roots that the walk did not
// find, or found without text.
func (r *run) prune(ctx context.Context) error {
	keep := make(map[string]bool, len(r.results))
	for _, f := range r.results {
		if f.Status != Skipped {
			keep[f.Path] = true
		}
	}
	var gone []string
	for path := range r.states {
		if !keep[path] && below(r.listing.Roots, path) {
			gone = append(gone, path)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	slices.Sort(gone)
	if _, err := r.store.Delete(ctx, r.config.Collection, gone); err != nil {
		return fmt.Errorf("ingest: prune: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range gone {
		r.pruned = append(r.pruned, FileResult{Path: path, Status: Pruned})
	}
	return nil
}

// below reports whether a path lies under a root that was listed wholly there.
func below(roots []Root, path string) bool {
	for _, root := range roots {
		if !root.holds(path) {
			continue
		}
		if !slices.ContainsFunc(root.Unread, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }) {
			return true
		}
	}
	return false
}

func (r Root) holds(path string) bool {
	if !r.Folder {
		return path == r.Path
	}
	return r.Path == "" || strings.HasPrefix(path, r.Path+"/")
}
