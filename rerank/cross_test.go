package rerank

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ragd/retrieve"
)

// fakePairs scores a passage by how often it says "crane" and takes a
// millisecond for ten bytes.
type fakePairs struct {
	perByte time.Duration
	limit   int // bytes of a passage that are read; 0 for all
	calls   int
	err     error
}

func (*fakePairs) Model() string { return "fake-cross" }

func (f *fakePairs) ScorePairs(ctx context.Context, question string, passages []string) ([]PairScore, error) {
	f.calls++
	if f.err != nil {
		return nil, f.err
	}
	out := make([]PairScore, len(passages))
	for i, p := range passages {
		if f.limit > 0 && len(p) > f.limit {
			p, out[i].Cut = p[:f.limit], len(p)-f.limit
		}
		out[i].Score = float32(strings.Count(p, "crane")) - 5
		time.Sleep(time.Duration(len(question)+len(p)) * f.perByte)
	}
	return out, ctx.Err()
}

func newCross(t *testing.T, pairs PairScorer, timeout time.Duration) *Reranker {
	t.Helper()
	cross, err := NewCross(pairs, timeout)
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	cfg.Alone = true
	r, err := New(cross, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// cranes are hits that all count as evidence; the later, the more cranes.
func cranes(n int) []retrieve.Hit {
	hits := make([]retrieve.Hit, n)
	for i := range hits {
		text := strings.Repeat("crane ", 1+i) + strings.Repeat(string(rune('a'+i)), 100-6*i)
		hits[i] = hit(int64(i+1), text, 0.95-float32(i)/1000)
	}
	return hits
}

func TestCrossAloneOrders(t *testing.T) {
	r := newCross(t, &fakePairs{limit: 90}, time.Minute)
	hits := []retrieve.Hit{
		hit(1, "a boat", 0.99), hit(2, "the crane of the quay", 0.9), hit(3, "the crane and the other crane"+strings.Repeat(" of the quay", 10), 0.82),
	}
	ranking, err := r.Rerank(context.Background(), retrieve.Query{Text: "crane?"}, hits)
	if err != nil {
		t.Fatal(err)
	}
	if ids(ranking.Kept) != "3 2 1" {
		t.Errorf("order %s", ids(ranking.Kept))
	}
	want := Report{Scorer: "fake-cross", Candidates: 3, Scored: 3, Cut: 1}
	if ranking.Report != want {
		t.Errorf("report %+v, want %+v", ranking.Report, want)
	}
	if s := ranking.Kept[0].Scores; s.Rerank != -3 || s.RerankRank != 1 || s.RerankCut != 59 || s.Fused != 0.82 {
		t.Errorf("scores %+v", s)
	}
	if hits[0].Scores.Rerank != 0 {
		t.Error("the caller's hits were changed")
	}
}

// A rerank that would pass its deadline scores fewer, the best of the search first,
// says so, and does not pass it.
func TestCrossKeepsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pairs := &fakePairs{perByte: 100 * time.Microsecond}
		const timeout = 100 * time.Millisecond
		r := newCross(t, pairs, timeout)
		for call := range 3 {
			start := time.Now()
			ranking, err := r.Rerank(context.Background(), retrieve.Query{Text: "crane?"}, cranes(12))
			if err != nil {
				t.Fatal(err)
			}
			rep := ranking.Report
			if took := time.Since(start); took > timeout || took < timeout/2 {
				t.Errorf("call %d took %v of %v", call, took, timeout)
			}
			if rep.Scored < 5 || rep.Scored >= rep.Candidates || rep.Candidates != 12 || rep.Short != OutOfTime {
				t.Errorf("call %d: %+v", call, rep)
			}
			if first := ranking.Kept[0].Chunk.ID; first != int64(rep.Scored) {
				t.Errorf("call %d: chunk %d is first of %d scored", call, first, rep.Scored)
			}
			for i, h := range ranking.Kept[rep.Scored:] {
				if h.Chunk.ID != int64(rep.Scored+i+1) || h.Scores.Rerank != h.Scores.Fused {
					t.Errorf("call %d: unscored chunk %d stands at %d with %g", call, h.Chunk.ID, rep.Scored+i+1, h.Scores.Rerank)
				}
			}
		}
	})
}

// The deadline of the request counts too, and after a slow time all is scored again.
func TestCrossLearnsItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pairs := &fakePairs{perByte: time.Second}
		r := newCross(t, pairs, time.Minute)
		ask := func(ctx context.Context) Report {
			ranking, err := r.Rerank(ctx, retrieve.Query{Text: "crane?"}, cranes(12))
			if err != nil {
				t.Fatal(err)
			}
			return ranking.Report
		}
		if rep := ask(context.Background()); rep.Scored != 1 {
			t.Errorf("slow: %+v", rep)
		}
		pairs.perByte = time.Microsecond
		scored := 0
		for range 40 {
			scored = ask(context.Background()).Scored
		}
		if scored != 12 {
			t.Errorf("fast again: %d scored", scored)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if rep := ask(ctx); rep.Scored == 0 || rep.Scored == 12 || rep.Short != OutOfTime {
			t.Errorf("a short request: %+v", rep)
		}
	})
}

func TestCrossWithoutScores(t *testing.T) {
	r := newCross(t, &fakePairs{err: ErrQuestion}, time.Minute)
	ranking, err := r.Rerank(context.Background(), retrieve.Query{Text: "long"}, cranes(3))
	if err != nil || ids(ranking.Kept) != "1 2 3" || ranking.Report.Scored != 0 || ranking.Report.Short != QuestionTooLong {
		t.Errorf("%s, %+v, %v", ids(ranking.Kept), ranking.Report, err)
	}
	if _, err := newCross(t, &fakePairs{err: errBroken}, time.Minute).Rerank(context.Background(), retrieve.Query{}, cranes(3)); !errors.Is(err, errBroken) {
		t.Errorf("broken: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := newCross(t, &fakePairs{}, time.Minute).Rerank(ctx, retrieve.Query{}, cranes(3)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := NewCross(&fakePairs{}, 0); err == nil {
		t.Error("a timeout of 0 was accepted")
	}
}

// Evidence is found by sentences whatever the scorer, and none leaves the order.
func TestNoneKeepsTheOrder(t *testing.T) {
	r, err := New(None{}, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	ranking, err := r.Rerank(context.Background(), retrieve.Query{Vector: unit(0)}, []retrieve.Hit{
		hit(1, "far, with a close sentence", 0.1, unit(1.2), unit(0.1)), hit(2, "close as a whole", 0.9), hit(3, "far", 0.2, unit(1)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if ids(ranking.Kept) != "1 2" || len(ranking.Drops) != 1 || ranking.Report != (Report{Scorer: "none", Candidates: 3}) {
		t.Errorf("%s, %+v", ids(ranking.Kept), ranking)
	}
	if s := ranking.Kept[1].Scores; s.Rerank != s.Fused {
		t.Errorf("scores %+v", s)
	}
}
