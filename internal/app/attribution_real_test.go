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
	took *sleeps
}

// sleeps is how long the last sleep took, which on a busy machine is more than was asked for.
type sleeps struct{ last time.Duration }

func (s *sleeps) since(began time.Time) { s.last = time.Since(began) }

func (s sleepingRetriever) Retrieve(ctx context.Context, q retrieve.Query) ([]retrieve.Hit, error) {
	observe := q.Observe
	q.Observe = func(ctx context.Context, p retrieve.Part) (context.Context, func(error)) {
		ctx, end := observe(ctx, p)
		if p == s.part {
			defer s.took.since(time.Now())
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
type sleepingEmbedder struct {
	retrieve.Embedder
	took *sleeps
}

func (s sleepingEmbedder) EmbedQuery(ctx context.Context, text string) ([]float32, int, error) {
	defer func() {
		defer s.took.since(time.Now())
		time.Sleep(realDelay)
	}()
	return s.Embedder.EmbedQuery(ctx, text)
}

// sleepingScorer is late.
type sleepingScorer struct {
	rerank.BestSentence
	took *sleeps
}

func (s sleepingScorer) Score(ctx context.Context, q retrieve.Query, hits []retrieve.Hit) (rerank.Rating, error) {
	began := time.Now()
	time.Sleep(realDelay)
	s.took.since(began)
	return s.BestSentence.Score(ctx, q, hits)
}

// inRetrieval are the parts of retrieval.
var inRetrieval = []string{"embed", "dense", "lexical", "fuse"}

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
	var slept sleeps
	slow, err := rerank.New(sleepingScorer{took: &slept}, rerank.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		put   func()
		reads time.Duration // how late the client reads
		moves string
		// beside is what runs at the same time as what is delayed.
		beside string
	}{
		{"pg_sleep in the dense search", func() { l.ask.Retriever = sleepingRetriever{usual.Retriever, l.pool, retrieve.Dense, &slept} }, 0, "dense", "lexical"},
		{"pg_sleep in the lexical search", func() { l.ask.Retriever = sleepingRetriever{usual.Retriever, l.pool, retrieve.Lexical, &slept} }, 0, "lexical", "dense"},
		{"embedder", func() { l.ask.Embedder = sleepingEmbedder{usual.Embedder, &slept} }, 0, "embed", ""},
		{"scorer", func() { l.ask.Reranker = slow }, 0, "rerank", ""},
		// The sockets hold what the client has not read: nobody waits for it.
		{"client", func() {}, realDelay, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			off, noise := map[string][]time.Duration{}, map[string][]time.Duration{}
			var hidden []time.Duration
			for range realPairs {
				l.ask.Deps = usual
				first := ledger(l.measured(t, req, 0))
				c.put()
				with := ledger(l.measured(t, req, c.reads))
				l.ask.Deps = usual
				second := ledger(l.measured(t, req, 0))
				want := map[string]time.Duration{c.moves: slept.last}
				if slices.Contains(inRetrieval, c.moves) {
					// Retrieval is wall time: of the delay the part passes during which the
					// search beside would have been waited for anyway.
					hidden = append(hidden, max(0, (first[c.beside]-first[c.moves]+second[c.beside]-second[c.moves])/2))
					want["retrieval"] = slept.last - hidden[len(hidden)-1]
				}
				for name, d := range with {
					off[name] = append(off[name], d-(first[name]+second[name])/2-want[name])
					noise[name] = append(noise[name], (first[name] - second[name]).Abs())
				}
			}
			l.ask.Deps = usual
			if c.beside != "" {
				t.Logf("%s took %.3f ms longer than %s", c.beside, float64(median(hidden))/1e6, c.moves)
			}
			for _, name := range append(slices.Clone(inRetrieval), "retrieval", "rerank", "pack", "render", "queue", "prefill", "decode", "other") {
				got, alike := median(off[name]), median(noise[name])
				t.Logf("%-10s %8.3f ms off, without the delay %.3f apart", name, float64(got)/1e6, float64(alike)/1e6)
				if got.Abs() > realSlack+alike {
					t.Errorf("%s is %v off, more than %v", name, got, realSlack+alike)
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
