package answer

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"ragd/rerank"
	"ragd/retrieve"
	"ragd/telemetry"
)

// The places where a question can come to its end.
var places = []string{"embed", "dense", "lexical", "fuse", "rerank", "queue", "prefill", "decode"}

// fate is what happens at one place; at the others 3 ms pass and all is well.
type fate struct {
	place string
	end   func(context.Context) error
}

func (f fate) at(ctx context.Context, place string) error {
	time.Sleep(3 * time.Millisecond)
	if place == f.place {
		return f.end(ctx)
	}
	return nil
}

func (f fate) Model() string { return "e" }

func (f fate) EmbedQuery(ctx context.Context, _ string) ([]float32, int, error) {
	return []float32{1, 0}, 3, f.at(ctx, "embed")
}

// fatedRetriever runs its parts one after another; that a panic in one of several
// goroutines cannot be held is not this package's matter.
type fatedRetriever struct {
	fate
	hits []retrieve.Hit
}

func (f fatedRetriever) Retrieve(ctx context.Context, q retrieve.Query) ([]retrieve.Hit, error) {
	for _, p := range []retrieve.Part{retrieve.Dense, retrieve.Lexical, retrieve.Fuse} {
		ctx, end := q.Begin(ctx, p)
		err := f.at(ctx, string(p))
		end(err)
		if err != nil {
			return nil, err
		}
	}
	return f.hits, nil
}

type fatedScorer struct{ fate }

func (fatedScorer) Name() string { return "s" }

func (f fatedScorer) Score(ctx context.Context, _ retrieve.Query, hits []retrieve.Hit) (rerank.Rating, error) {
	return rerank.Rating{Scores: make([]float32, len(hits))}, f.at(ctx, "rerank")
}

// fatedGenerator stamps its way as the engine does, also that of an answer that ends
// early.
type fatedGenerator struct{ fate }

func (fatedGenerator) Model() ModelInfo                 { return ModelInfo{Name: "m", Window: 4096} }
func (fatedGenerator) Pace() Pace                       { return Pace{} }
func (fatedGenerator) CheckFormat(ResponseFormat) error { return nil }

func (f fatedGenerator) Generate(ctx context.Context, _ Generation, emit func(Event)) (out Generated, err error) {
	out.Times.Submitted = time.Now()
	emit(Event{Queued: true, Position: 1})
	if err := f.at(ctx, "queue"); err != nil {
		return f.cut(out), err
	}
	out.Times.Scheduled = time.Now()
	if err := f.at(ctx, "prefill"); err != nil {
		return f.cut(out), err
	}
	out.Times.FirstToken = time.Now()
	for range 3 {
		out.OutputTokens++
		out.Times.OutputTokens = out.OutputTokens
		emit(Event{Text: "word "})
		out.Times.Last = time.Now()
		if err := f.at(ctx, "decode"); err != nil {
			return f.cut(out), err
		}
	}
	out.FinishReason = "stop"
	return out, nil
}

func (fatedGenerator) cut(out Generated) Generated {
	out.FinishReason = "cancelled"
	return out
}

// fated is a service whose questions meet a fate.
func fated(t *testing.T, f fate, hits []retrieve.Hit) *rig {
	t.Helper()
	r := newRig(t, hits, &fakeGenerator{})
	reranker, err := rerank.New(fatedScorer{f}, rerank.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	r.Embedder, r.Retriever, r.Reranker, r.Generator = f, fatedRetriever{f, hits}, reranker, fatedGenerator{f}
	return r
}

// TestSpansAreTheBody: whatever becomes of a question, and wherever, there is one
// tree of spans, all ended once, whose times are those of the body to the microsecond.
func TestSpansAreTheBody(t *testing.T) {
	broken := errors.New("broken")
	type ending struct {
		name    string
		end     func(context.Context) error
		code    Code
		outcome telemetry.Outcome
	}
	wait := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for _, e := range []ending{
		{"error", func(context.Context) error { return broken }, Internal, telemetry.Failed},
		{"panic", func(context.Context) error { panic("deliberate") }, Internal, telemetry.Failed},
		{"timeout", wait, Timeout, telemetry.TimedOut},
		{"cancel", wait, Cancelled, telemetry.Cancelled},
	} {
		for _, place := range places {
			t.Run(e.name+" in "+place, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := fated(t, fate{place, e.end}, twoChunks)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					switch e.code {
					case Timeout:
						ctx, cancel = context.WithTimeout(ctx, time.Second)
						defer cancel()
					case Cancelled:
						time.AfterFunc(700*time.Millisecond, cancel)
					}
					res, err := r.Ask(ctx, time.Now(), Request{Question: "Well?"}, &recordingSink{})
					if AsError(err).Code != e.code {
						t.Fatalf("ended with %v", err)
					}
					if e.code == Cancelled && (res.FinishReason != "cancelled" || place == "decode" && res.Usage.OutputTokens != 1) {
						t.Errorf("%q after %d tokens", res.FinishReason, res.Usage.OutputTokens)
					}
					r.checkTree(t, res, e.outcome)
					if inEngine := slices.Index(places, place) >= slices.Index(places, "queue"); e.name != "panic" || !inEngine {
						r.checkCharged(t, place, res.Timings)
					}
				})
			})
		}
	}
	for name, c := range map[string]struct {
		hits    []retrieve.Hit
		mode    string
		outcome telemetry.Outcome
	}{
		"answered":  {twoChunks, ModeGenerate, telemetry.Answered},
		"extracted": {twoChunks, ModeExtract, telemetry.Answered},
		"refused":   {nil, ModeAuto, telemetry.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := fated(t, fate{}, c.hits)
				res, err := r.Ask(t.Context(), time.Now(), Request{Question: "Well?", AnswerMode: c.mode}, &recordingSink{})
				if err != nil {
					t.Fatal(err)
				}
				r.checkTree(t, res, c.outcome)
			})
		})
	}
}

// TestSearchHasItsTree, also where it fails.
func TestSearchHasItsTree(t *testing.T) {
	for _, place := range []string{"", "embed", "dense", "lexical", "fuse", "rerank"} {
		for name, end := range map[string]func(context.Context) error{"error": func(context.Context) error { return errors.New("broken") }, "panic": func(context.Context) error { panic("deliberate") }} {
			t.Run(place+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := fated(t, fate{place, end}, twoChunks)
					res, err := r.Search(t.Context(), SearchRequest{Query: "Well?"})
					if (err != nil) != (place != "") {
						t.Fatalf("ended with %v", err)
					}
					outcome := telemetry.Answered
					if err != nil {
						outcome = telemetry.Failed
					}
					r.checkSpans(t, string(RouteSearch), res.TraceID, res.Timings, outcome)
					if place != "" {
						r.checkCharged(t, place, res.Timings)
					}
				})
			})
		}
	}
}

// TestRejectedHasARoot: a request that was wrong is one ended span and one row.
func TestRejectedHasARoot(t *testing.T) {
	r := fated(t, fate{}, nil)
	res, err := r.Ask(t.Context(), time.Now(), Request{}, &recordingSink{})
	if AsError(err).Code != Invalid {
		t.Fatal(err)
	}
	found, err := r.Search(t.Context(), SearchRequest{})
	if e := AsError(err); e.Code != Invalid || e.Field != "query" {
		t.Fatal(err)
	}
	spans := r.spans.GetSpans()
	if len(spans) != 2 || spans[0].SpanContext.TraceID().String() != res.TraceID || spans[1].SpanContext.TraceID().String() != found.TraceID || spans[1].Name != string(RouteSearch) {
		t.Errorf("%d spans", len(spans))
	}
	if n := strings.Count(r.log.String(), `"outcome":"rejected"`); n != 2 || r.Telemetry.Active() != 0 {
		t.Errorf("%d rows, %d requests run", n, r.Telemetry.Active())
	}
}

// checkTree holds a question's spans to its body.
func (r *rig) checkTree(t *testing.T, res *Result, outcome telemetry.Outcome) {
	t.Helper()
	checkSum(t, res)
	r.checkSpans(t, string(RouteAsk), res.TraceID, res.Timings, outcome)
}

func (r *rig) checkSpans(t *testing.T, name, traceID string, timings telemetry.Timings, outcome telemetry.Outcome) {
	t.Helper()
	spans := map[trace.SpanID]tracetest.SpanStub{}
	took := map[string]time.Duration{}
	root := tracetest.SpanStub{}
	for _, s := range r.spans.GetSpans() {
		id := s.SpanContext.SpanID()
		if _, twice := spans[id]; twice || s.EndTime.IsZero() || s.SpanContext.TraceID().String() != traceID {
			t.Errorf("span %s ended twice, never, or in another trace", s.Name)
		}
		spans[id] = s
		first, _, _ := strings.Cut(s.Name, " ")
		took[first] += s.EndTime.Sub(s.StartTime)
		if !s.Parent.IsValid() {
			root = s
		}
	}
	if root.Name != name || root.EndTime.Sub(root.StartTime) != timings.Total {
		t.Errorf("root %q took %v, the body says %v", root.Name, root.EndTime.Sub(root.StartTime), timings.Total)
	}
	for _, s := range spans {
		if p, ok := spans[s.Parent.SpanID()]; s.Name != root.Name && (!ok || s.StartTime.Before(p.StartTime) || s.EndTime.After(p.EndTime)) {
			t.Errorf("%s lies outside of its parent %q", s.Name, p.Name)
		}
	}
	body := figures(t, timings)
	for _, stage := range []string{"embed", "dense", "lexical", "fuse", "retrieval", "rerank", "pack", "render", "queue", "prefill", "decode"} {
		span := took[stage]
		if stage == "embed" {
			span = took["embeddings"] // as the conventions name it
		}
		if got, want := math.Round(body[stage+"_ms"]*1e3), math.Round(float64(span)/1e3); got != want {
			t.Errorf("%s: %v µs in the body, %v in its spans", stage, got, want)
		}
	}
	if !hasAttribute(root, "ragd.outcome", string(outcome)) {
		t.Errorf("the root says %v, want %s", root.Attributes, outcome)
	}
	if n := strings.Count(r.log.String(), `"msg":"query"`); n != 1 || r.Telemetry.Active() != 0 {
		t.Errorf("%d rows, %d requests run", n, r.Telemetry.Active())
	}
}

// checkCharged: a request that ended early ends in a span of the stage it was in, and
// all of its time is some stage's, since on the clock of a bubble none passes between.
// (What a panic in the generator itself takes away is other: its stamps are lost. A
// panic in the engine is an error of the generator.)
func (r *rig) checkCharged(t *testing.T, place string, timings telemetry.Timings) {
	t.Helper()
	if timings.Other() != 0 {
		t.Errorf("%v of %v are charged to no stage: %+v", timings.Other(), timings.Total, timings.Rows())
	}
	name := place
	if place == "embed" {
		name = "embeddings e"
	}
	for _, s := range r.spans.GetSpans() {
		if s.Name == name || strings.HasPrefix(s.Name, place+" ") {
			return
		}
	}
	t.Errorf("no span of %s", place)
}

func hasAttribute(s tracetest.SpanStub, key, value string) bool {
	for _, a := range s.Attributes {
		if string(a.Key) == key && a.Value.AsString() == value {
			return true
		}
	}
	return false
}

// figures are the body's numbers; null is 0.
func figures(t *testing.T, timings telemetry.Timings) map[string]float64 {
	t.Helper()
	data, err := json.Marshal(timings)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]float64
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
