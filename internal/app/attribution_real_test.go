//go:build timing

package app

import (
	"bufio"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/inference/engine"
	"ragd/internal/answer"
	"ragd/rerank"
	"ragd/retrieve"
	"ragd/telemetry"
)

// The delay put in, how often with and without it in turn, and how far off the
// median may be, beside what the machine itself makes of two runs that are alike.
const (
	realDelay = 300 * time.Millisecond
	realPairs = 9
	realSlack = 5 * time.Millisecond
)

// sleepingRetriever lets the database sleep inside one part of the search.
type sleepingRetriever struct {
	retrieve.Retriever
	pool *pgxpool.Pool
	part retrieve.Part
}

func (s sleepingRetriever) Retrieve(ctx context.Context, q retrieve.Query) ([]retrieve.Hit, error) {
	observe := q.Observe
	q.Observe = func(ctx context.Context, p retrieve.Part) (context.Context, func(error)) {
		ctx, end := observe(ctx, p)
		if p == s.part {
			if _, err := s.pool.Exec(ctx, "SELECT pg_sleep($1)", realDelay.Seconds()); err != nil {
				return ctx, func(error) { end(err) }
			}
		}
		return ctx, end
	}
	return s.Retriever.Retrieve(ctx, q)
}

// sleepingEmbedder is late. It works first: on a machine that others use too, work right
// after a sleep is favoured, and what follows it, here prefill, pays for that.
type sleepingEmbedder struct{ retrieve.Embedder }

func (s sleepingEmbedder) EmbedQuery(ctx context.Context, text string) ([]float32, int, error) {
	defer time.Sleep(realDelay)
	return s.Embedder.EmbedQuery(ctx, text)
}

// sleepingScorer is late.
type sleepingScorer struct{ rerank.BestSentence }

func (s sleepingScorer) Score(ctx context.Context, q retrieve.Query, hits []retrieve.Hit) (rerank.Rating, error) {
	time.Sleep(realDelay)
	return s.BestSentence.Score(ctx, q, hits)
}

// TestDelaysAreChargedForReal puts delays into the running service, through the real
// database, engine and sockets, and compares medians of runs with and without in
// turn. It is a test of clocks, so it wants a quiet machine: make check-attribution.
func TestDelaysAreChargedForReal(t *testing.T) {
	cfg := settings(t)
	cfg.Inference.MaxRunning = 1
	l := start(t, cfg)
	c := l.notes(t)
	req := body{"question": "Which lamp is violet?", "collection": c, "stream": true, "answer_mode": "generate", "budget": body{"answer_tokens": 4}}
	usual := l.ask.Deps
	l.measured(t, req, 0)
	slow, err := rerank.New(sleepingScorer{}, rerank.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		put   func()
		reads time.Duration // how late the client reads
		moves string
	}{
		{"pg_sleep in the dense search", func() { l.ask.Retriever = sleepingRetriever{usual.Retriever, l.pool, retrieve.Dense} }, 0, "retrieval"},
		{"pg_sleep in the lexical search", func() { l.ask.Retriever = sleepingRetriever{usual.Retriever, l.pool, retrieve.Lexical} }, 0, "retrieval"},
		{"embedder", func() { l.ask.Embedder = sleepingEmbedder{usual.Embedder} }, 0, "retrieval"},
		{"scorer", func() { l.ask.Reranker = slow }, 0, "rerank"},
		// The sockets hold what the client has not read: nobody waits for it.
		{"client", func() {}, realDelay, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			moved, noise := map[string][]time.Duration{}, map[string][]time.Duration{}
			for range realPairs {
				l.ask.Deps = usual
				first := ledger(l.measured(t, req, 0))
				c.put()
				with := ledger(l.measured(t, req, c.reads))
				l.ask.Deps = usual
				second := ledger(l.measured(t, req, 0))
				for name, d := range with {
					moved[name] = append(moved[name], d-(first[name]+second[name])/2)
					noise[name] = append(noise[name], (first[name] - second[name]).Abs())
				}
			}
			l.ask.Deps = usual
			for _, name := range []string{"retrieval", "rerank", "pack", "render", "queue", "prefill", "decode", "other"} {
				want := time.Duration(0)
				if name == c.moves {
					want = realDelay
				}
				got, alike := median(moved[name]), median(noise[name])
				t.Logf("%-10s %8.3f ms, without the delay %.3f apart", name, float64(got)/1e6, float64(alike)/1e6)
				if (got - want).Abs() > realSlack+alike {
					t.Errorf("%s moved by %v, want %v ± %v", name, got, want, realSlack+alike)
				}
			}
		})
	}
	t.Run("busy engine", func(t *testing.T) { l.busy(t, req) })
}

// busy lets the engine work on something else: the queue lasts until the stamp of that
// one's last token.
func (l *live) busy(t *testing.T, req body) {
	t.Helper()
	var off []time.Duration
	for range realPairs {
		s, err := l.gen.engine.Submit(t.Context(), engine.Request{Tokens: slices.Repeat([]int32{20}, 64), MaxTokens: 150, IgnoreEOS: true})
		if err != nil {
			t.Fatal(err)
		}
		ends := make(chan time.Time, 1)
		go func() {
			for {
				e, err := s.Next(context.Background())
				if d, ok := e.(engine.Done); ok || err != nil {
					ends <- d.Times.Last
					return
				}
			}
		}()
		l.spans.Reset()
		got := l.measured(t, req, 0)
		for _, s := range l.spans.GetSpans() {
			if s.Name == "queue" {
				submitted := s.EndTime.Add(-got.Stage(telemetry.StageQueue))
				off = append(off, got.Stage(telemetry.StageQueue)-(<-ends).Sub(submitted))
			}
		}
	}
	if len(off) != realPairs {
		t.Fatalf("%d queues of %d requests", len(off), realPairs)
	}
	t.Logf("queue is off the engine's stamps by %v", median(off))
	if got := median(off); got.Abs() > realSlack {
		t.Errorf("queue is off by %v", got)
	}
}

// measured asks a stream and returns its ledger; the client waits before it reads.
func (l *live) measured(t *testing.T, req body, wait time.Duration) telemetry.Timings {
	t.Helper()
	resp, err := l.post(t, t.Context(), "/ask", req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	time.Sleep(wait)
	var res answer.Result
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for last := ""; lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && last == "event: done" {
			if err := json.Unmarshal([]byte(data), &res); err != nil {
				t.Fatal(err)
			}
		}
		last = lines.Text()
	}
	if res.TraceID == "" {
		t.Fatal("no answer")
	}
	return res.Timings
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
