package eval

import (
	"context"
	"fmt"
	"time"

	"ragd/ingest/store"
	"ragd/retrieve/lexical"
)

// costChunks is how many chunks are stored to see what their words cost.
const costChunks = 4000

// noWords leaves the lexical index empty.
type noWords struct{}

func (noWords) Terms(string) map[string]int { return nil }

// wordCost is what a chunk's place in the lexical index costs in milliseconds:
// analysis, storing and the first merges. The same documents are stored with their
// words and without, in turn, in collections that are dropped again.
func (g *grower) wordCost(ctx context.Context, n int) (float64, error) {
	stores := []*store.Store{store.New(g.Inside.Pool, g.Inside.Tenant, lexical.Analyzer{}), store.New(g.Inside.Pool, g.Inside.Tenant, noWords{})}
	names := []string{g.collection + "/words", g.collection + "/no words"}
	defer g.Inside.drop(context.WithoutCancel(ctx), names)
	n = min(n, costChunks)
	var spent [2]time.Duration
	for i := 0; grownSize(n, i) > 0; i++ {
		doc := g.document(n, i)
		for k := range stores {
			side := (i + k) % 2
			start := time.Now()
			if _, err := stores[side].Put(ctx, names[side], g.model, "grown", doc); err != nil {
				return 0, fmt.Errorf("cost of words: %w", err)
			}
			spent[side] += time.Since(start)
		}
		g.cfg.Progress("cost of words", i*grownChunks, n)
	}
	return milliseconds(spent[0]-spent[1]) / float64(n), nil
}
