package rerank

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ragd/ingest"
	"ragd/retrieve"
)

func unit(angle float64) []float32 {
	return []float32{float32(math.Cos(angle)), float32(math.Sin(angle))}
}

func hit(id int64, text string, dense float32, sentences ...[]float32) retrieve.Hit {
	return retrieve.Hit{
		Chunk:           ingest.Chunk{ID: id, Text: text},
		SentenceVectors: sentences,
		Scores:          retrieve.Scores{Dense: dense, DensePart: dense, Fused: dense},
	}
}

func ids(hits []retrieve.Hit) string {
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprint(&b, h.Chunk.ID, " ")
	}
	return strings.TrimSpace(b.String())
}

func newReranker(t *testing.T, cfg Config) *Reranker {
	t.Helper()
	r, err := New(BestSentence{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestBestSentenceDecidesBetweenNeighbours(t *testing.T) {
	q := retrieve.Query{Vector: unit(0)}
	r := newReranker(t, DefaultConfig())
	ranking, err := r.Rerank(context.Background(), q, []retrieve.Hit{
		hit(1, "the general chapter about storms and weather", 0.90, unit(1.0), unit(0.9)),
		hit(2, "a chapter whose second sentence holds the answer", 0.89, unit(1.2), unit(0.05)),
		hit(3, "a third chapter that is about something else", 0.85, unit(1.1)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if ids(ranking.Kept) != "2 1 3" || len(ranking.Drops) != 0 {
		t.Errorf("order %s, drops %v", ids(ranking.Kept), ranking.Drops)
	}
	if best := ranking.Kept[0].Scores; best.SentenceBest != 1 || best.RerankRank != 1 {
		t.Errorf("scores %+v", best)
	}
}

func TestDropsNameOneReason(t *testing.T) {
	long := "The crane at dock four lifts fourteen tonnes and is inspected in March."
	r := newReranker(t, DefaultConfig())
	ranking, err := r.Rerank(context.Background(), retrieve.Query{Vector: unit(0)}, []retrieve.Hit{
		hit(1, long, 0.9),
		hit(2, "  "+strings.ToUpper(long)+"\n\n", 0.89),
		hit(3, strings.Repeat("기중기는 4번 부두에서 14톤까지 들어 올린다. ", 3), 0.88),
		hit(4, strings.Repeat("기중기는 4번 부두에서 14톤까지 들어 올린다. ", 2), 0.87),
		hit(5, "Nothing to do with it.", 0.4),
	})
	if err != nil {
		t.Fatal(err)
	}
	if ids(ranking.Kept) != "1 3" {
		t.Errorf("kept %s, want 1 3", ids(ranking.Kept))
	}
	want := map[int64]Reason{2: Duplicate, 4: Duplicate, 5: BelowThreshold}
	for _, d := range ranking.Drops {
		if want[d.Hit.Chunk.ID] != d.Reason {
			t.Errorf("chunk %d dropped as %s, want %s", d.Hit.Chunk.ID, d.Reason, want[d.Hit.Chunk.ID])
		}
	}
}

func TestSimilarInMeaningIsNotDuplicate(t *testing.T) {
	var seen shingleIndex
	for _, text := range []string{
		"The relay R-12 is replaced every two years by the harbour crew.",
		"Every two years the harbour crew replaces relay R-12.",
		"", "a", "b",
	} {
		if !seen.add(text, 0.9) {
			t.Errorf("%q was taken for a duplicate", text)
		}
	}
}

func TestEveryHitIsKeptOrDropped(t *testing.T) {
	words := []string{"alpha", "beta", "gamma delta epsilon", "a much longer passage of words", "짧은 글", "alpha"}
	r, err := New(BestSentence{}, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 120).Draw(t, "n")
		hits := make([]retrieve.Hit, n)
		for i := range hits {
			text := rapid.SampledFrom(words).Draw(t, "text")
			hits[i] = hit(int64(i+1), text, rapid.Float32Range(-1, 1).Draw(t, "cos"), unit(rapid.Float64Range(0, 3).Draw(t, "angle")))
		}
		ranking, err := r.Rerank(context.Background(), retrieve.Query{Vector: unit(0)}, hits)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int64]bool{}
		for _, h := range ranking.Kept {
			seen[h.Chunk.ID] = true
		}
		for _, d := range ranking.Drops {
			seen[d.Hit.Chunk.ID] = true
		}
		if len(seen) != n || len(ranking.Kept)+len(ranking.Drops) != n {
			t.Fatalf("%d hits became %d kept and %d dropped", n, len(ranking.Kept), len(ranking.Drops))
		}
	})
}

// The scorer moves the dense part alone: what the words gave stays.
func TestMixKeepsTheLexicalPart(t *testing.T) {
	hits := []retrieve.Hit{hit(1, "one", 0.9), hit(2, "two", 0.8)}
	hits[0].Scores.DensePart, hits[0].Scores.Fused = 1, 0.5
	hits[1].Scores.DensePart, hits[1].Scores.Fused = 0, 0.5 // wholly lexical
	mix(hits, []float32{0.2, 0.4}, 0.5, 0.5)
	for i, want := range []float64{0.5 - 0.25, 0.5 + 0.25} {
		if got := hits[i].Scores.Rerank; math.Abs(float64(got)-want) > 1e-6 {
			t.Errorf("hit %d: rerank %g, want %g", i, got, want)
		}
	}
}

func TestWordsAreEvidence(t *testing.T) {
	r := newReranker(t, DefaultConfig())
	shared, named, neither := hit(1, "FLT-7012 means that the film is torn.", 0.1), hit(2, "See FLT-7013.", 0.1), hit(3, "Nothing of the kind.", 0.1)
	shared.Scores.LexicalShare, neither.Scores.LexicalShare, named.Scores.Named = 0.9, 0.1, true
	ranking, err := r.Rerank(context.Background(), retrieve.Query{Vector: unit(0)}, []retrieve.Hit{shared, named, neither})
	if err != nil || ids(ranking.Kept) != "1 2" || len(ranking.Drops) != 1 {
		t.Errorf("kept %s, drops %v (%v)", ids(ranking.Kept), ranking.Drops, err)
	}
}

// One chunk has to be evidence; then others may be weaker. Without a word in common
// the weaker bound is the only one.
func TestBounds(t *testing.T) {
	r := newReranker(t, DefaultConfig())
	for name, c := range map[string]struct {
		first, second, share float32
		want                 string
	}{
		"one is evidence":            {0.88, 0.81, 0.1, "1 2"},
		"the second is too far":      {0.88, 0.79, 0.1, "1"},
		"none is":                    {0.86, 0.81, 0.1, ""},
		"near, with next to no word": {0.88, 0.81, 0.04, ""},
		"words without the meaning":  {0.74, 0.70, 0.5, ""},
		"no word in common":          {0.82, 0.79, 0, "1"},
		"next to no word":            {0.82, 0.79, 0.02, "1"},
		"no word in common, too far": {0.79, 0.78, 0, ""},
		"the words are evidence":     {0.82, 0.81, 0.3, "1 2"},
	} {
		hits := []retrieve.Hit{hit(1, "The crane lifts fourteen tonnes.", c.first), hit(2, "A rope holds the boat.", c.second)}
		hits[0].Scores.LexicalShare = c.share
		ranking, err := r.Rerank(context.Background(), retrieve.Query{Vector: unit(0)}, hits)
		if err != nil || ids(ranking.Kept) != c.want {
			t.Errorf("%s: kept %q, want %q (%v)", name, ids(ranking.Kept), c.want, err)
		}
	}
}

type brokenScorer struct{}

var errBroken = errors.New("broken")

func (brokenScorer) Name() string { return "broken" }
func (brokenScorer) Score(context.Context, retrieve.Query, []retrieve.Hit) (Rating, error) {
	return Rating{}, errBroken
}

func TestScorerErrorIsWrapped(t *testing.T) {
	r, err := New(brokenScorer{}, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rerank(context.Background(), retrieve.Query{}, nil); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

func TestConfigBounds(t *testing.T) {
	for _, cfg := range []Config{{}, {Depth: 1, Share: 2, Similarity: 1}, {Depth: 1, DenseWeight: -1, Similarity: 1}, {Depth: 1, Similarity: 0}} {
		if _, err := New(BestSentence{}, cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}
