package ingest_test

import (
	"context"
	"errors"
	"testing"

	"ragd/ingest"
	"ragd/ingest/ingesttest"
)

// brokenWalk says that one folder could not be listed.
type brokenWalk struct {
	ingest.Source
	unread string
}

func (b brokenWalk) Find(ctx context.Context, roots []string) (ingest.Listing, error) {
	l, err := b.Source.Find(ctx, roots)
	for i := range l.Roots {
		l.Roots[i].Unread = append(l.Roots[i].Unread, b.unread)
	}
	return l, err
}

func TestPruneSparesWhatCouldNotBeListed(t *testing.T) {
	r := newRoad(t, map[string]string{"a.md": "Here to stay."})
	r.config.Prune = true
	r.source = brokenWalk{r.source, "docs/locked"}
	for _, path := range []string{"docs/locked/x.md", "docs/locked-not/x.md", "docs/locked", "docs/gone.md"} {
		if _, err := r.store.Put(t.Context(), "c", "fake", "r", ingesttest.NewEncoded(path, "h")); err != nil {
			t.Fatal(err)
		}
	}
	r.expect("1 0 0 0 0 2")
	r.stored("docs/locked/x.md")
	r.stored("docs/locked")
}

func TestPruneOfAFileRootTouchesThatFileOnly(t *testing.T) {
	r := newRoad(t, map[string]string{"a.md": "One.", "b.md": "Two."})
	r.config.Prune = true
	r.expect("2 0 0 0 0 0")
	r.write("a.md", " ")
	r.remove("b.md")
	r.expect("0 0 1 0 0 1", r.dir+"/a.md")
	r.stored("docs/b.md")
}

func TestNothingIsPrunedAfterAnInterruption(t *testing.T) {
	r := newRoad(t, shelves(4))
	r.config.Prune = true
	r.expect("4 0 0 0 0 0")
	r.remove("s00.txt")
	r.write("s01.txt", "Changed since the last run.")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.store.OnPut = func(string) error { cancel(); return nil }
	if report, err := r.run(ctx); !errors.Is(err, context.Canceled) || report.Pruned != 0 {
		t.Errorf("%v, %+v", err, report)
	}
	r.stored("docs/s00.txt")
}
