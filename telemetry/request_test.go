package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// rig is telemetry whose spans and log lie in memory.
type rig struct {
	*Telemetry
	spans *tracetest.InMemoryExporter
	log   *strings.Builder
}

func newRig(t *testing.T, content bool) *rig {
	t.Helper()
	r := &rig{spans: tracetest.NewInMemoryExporter(), log: &strings.Builder{}}
	tel, err := New(t.Context(), Config{Version: "1.2.3", SpanExporter: r.spans, RecordContent: content}, slog.New(slog.NewJSONHandler(r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.Telemetry = tel
	t.Cleanup(func() {
		if err := tel.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestCancelledIsChargedToItsStage: a generation that ends early was in one stage
// and its time, to the end, is that stage's.
func TestCancelledIsChargedToItsStage(t *testing.T) {
	base := time.Now()
	at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		name                   string
		times                  EngineTimes
		queue, prefill, decode int // ms
		spans                  string
	}{
		{"never submitted", EngineTimes{}, 0, 0, 0, ""},
		{"queue", EngineTimes{Submitted: at(10)}, 90, 0, 0, "queue"},
		{"prefill", EngineTimes{Submitted: at(10), Scheduled: at(30)}, 20, 70, 0, "queue prefill"},
		{"decode", EngineTimes{Submitted: at(10), Scheduled: at(30), FirstToken: at(60), OutputTokens: 5}, 20, 30, 40, "queue prefill decode"},
		{"whole", EngineTimes{Submitted: at(10), Scheduled: at(30), FirstToken: at(60), Last: at(80), OutputTokens: 5}, 20, 30, 20, "queue prefill decode"},
		{"one token", EngineTimes{Submitted: at(10), Scheduled: at(30), FirstToken: at(60), Last: at(60), OutputTokens: 1}, 20, 30, 0, "queue prefill decode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			ctx, req := r.Begin(t.Context(), "POST /ask", base)
			chat, end := req.Chat(ctx, "m", Server{})
			req.Generation(chat, c.times, at(100))
			end(Call{}, context.Canceled)
			got := req.Timings(at(100))
			for stage, want := range map[Stage]int{StageQueue: c.queue, StagePrefill: c.prefill, StageDecode: c.decode} {
				if d := got.Stage(stage); d != time.Duration(want)*time.Millisecond {
					t.Errorf("%s took %v, want %d ms", stage, d, want)
				}
			}
			if hasFirst := got.LLMTTFT != 0; hasFirst != !c.times.FirstToken.IsZero() {
				t.Errorf("llm_ttft %v", got.LLMTTFT)
			}
			if hasPace := got.TPOT != 0; hasPace != (c.times.OutputTokens >= 2) {
				t.Errorf("tpot %v of %d tokens", got.TPOT, c.times.OutputTokens)
			}
			var names []string
			for _, s := range r.spans.GetSpans() {
				if s.Name != "chat m" {
					names = append(names, s.Name)
				}
			}
			if strings.Join(names, " ") != c.spans {
				t.Errorf("spans %v, want %q", names, c.spans)
			}
			req.End(ctx, got, Summary{Outcome: Cancelled})
		})
	}
}

func TestFirstWriteCountsOnce(t *testing.T) {
	r := newRig(t, false)
	base := time.Now()
	_, req := r.Begin(t.Context(), "POST /ask", base)
	if got := req.Timings(base.Add(time.Second)).TTFT; got != 0 {
		t.Errorf("nothing was written, ttft is %v", got)
	}
	req.FirstWrite(base.Add(40 * time.Millisecond))
	req.FirstWrite(base.Add(90 * time.Millisecond))
	if got := req.Timings(base.Add(time.Second)).TTFT; got != 40*time.Millisecond {
		t.Errorf("ttft %v", got)
	}
}

// TestSpansAreTheTimings: every span of a request ends, has the times of the
// ledger, and hangs where DESIGN §5 says.
func TestSpansAreTheTimings(t *testing.T) {
	r := newRig(t, false)
	oneQuestion(r.Telemetry)
	spans := r.spans.GetSpans()
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	got := map[string]string{}
	for _, s := range spans {
		got[s.Name] = names[s.Parent.SpanID().String()]
		if s.EndTime.Before(s.StartTime) || s.EndTime.IsZero() {
			t.Errorf("%s runs from %v to %v", s.Name, s.StartTime, s.EndTime)
		}
	}
	want := map[string]string{
		"POST /ask": "", "pack": "POST /ask", "retrieval default": "POST /ask", "embeddings embedder": "retrieval default", "dense": "retrieval default",
		"lexical": "retrieval default", "fuse": "retrieval default", "rerank best-sentence": "POST /ask", "chat model": "POST /ask",
		"render": "chat model", "queue": "chat model", "prefill": "chat model", "decode": "chat model",
	}
	for name, parent := range want {
		if p, ok := got[name]; !ok || p != parent {
			t.Errorf("%s hangs below %q, want %q", name, p, parent)
		}
	}
	if len(got) != len(want) {
		t.Errorf("spans %v", got)
	}
}

// An answer that paused for others says so in its span, and one that did not says
// nothing; the stages are those of any other.
func TestPausesAreTold(t *testing.T) {
	base := time.Now()
	for _, n := range []int{0, 2} {
		r := newRig(t, false)
		ctx, req := r.Begin(t.Context(), "POST /ask", base)
		ctx, end := req.Chat(ctx, "model", Server{})
		at := func(ms int) time.Time { return base.Add(time.Duration(ms) * time.Millisecond) }
		req.Generation(ctx, EngineTimes{Submitted: at(0), Scheduled: at(5), FirstToken: at(10), Last: at(90), OutputTokens: 9, Preemptions: n, Preempted: time.Duration(n) * 15 * time.Millisecond}, at(90))
		end(Call{}, nil)
		if got := req.Timings(at(90)).Stage(StageDecode); got != 80*time.Millisecond {
			t.Errorf("decode took %v, want 80 ms", got)
		}
		for _, s := range r.spans.GetSpans() {
			told := slices.ContainsFunc(s.Attributes, func(kv attribute.KeyValue) bool { return kv.Key == attrPreemptions || kv.Key == attrPreemptedMS })
			right := slices.Contains(s.Attributes, attribute.Int(attrPreemptions, n)) && slices.Contains(s.Attributes, attribute.Float64(attrPreemptedMS, 30))
			if want := n > 0 && s.Name == "chat model"; told != want || right != want {
				t.Errorf("%s of an answer that paused %d times: %v", s.Name, n, s.Attributes)
			}
		}
	}
}

// A call to a model of another server is a client's, with the server's address and the
// form it is asked in; one in this process is internal and has neither. It says what it
// came to, if it came to anything.
func TestChatSaysWhereTheModelRuns(t *testing.T) {
	for _, c := range []struct {
		at    Server
		call  Call
		kind  trace.SpanKind
		attrs map[attribute.Key]attribute.Value
	}{
		{Server{}, Call{InputTokens: 9}, trace.SpanKindInternal, map[attribute.Key]attribute.Value{attrProvider: attribute.StringValue("ragd")}},
		{Server{"models.example", 8000}, Call{InputTokens: 9, OutputTokens: 3, CachedTokens: 4, FinishReason: "stop"}, trace.SpanKindClient, map[attribute.Key]attribute.Value{
			attrProvider: attribute.StringValue("openai"), attrServerAddress: attribute.StringValue("models.example"), attrServerPort: attribute.IntValue(8000),
			attrInputTokens: attribute.IntValue(9), attrOutputTokens: attribute.IntValue(3), attrCachedTokens: attribute.IntValue(4),
			attrFinishReasons: attribute.StringSliceValue([]string{"stop"}),
		}},
	} {
		r := newRig(t, false)
		ctx, req := r.Begin(t.Context(), "POST /ask", time.Now())
		_, end := req.Chat(ctx, "m", c.at)
		end(c.call, nil)
		span := r.spans.GetSpans()[0]
		c.attrs[attrOperation], c.attrs[attrRequestModel] = attribute.StringValue("chat"), attribute.StringValue("m")
		got := map[attribute.Key]attribute.Value{}
		for _, kv := range span.Attributes {
			got[kv.Key] = kv.Value
		}
		if span.Name != "chat m" || span.SpanKind != c.kind || !reflect.DeepEqual(got, c.attrs) {
			t.Errorf("at %+v: %q, %v, %v, want %v, %v", c.at, span.Name, span.SpanKind, got, c.kind, c.attrs)
		}
		req.End(ctx, req.Timings(time.Now()), Summary{Outcome: Answered})
	}
}

// TestContentIsOffByDefault, and on when the operator says so.
func TestContentIsOffByDefault(t *testing.T) {
	for _, on := range []bool{false, true} {
		r := newRig(t, on)
		ctx, req := r.Begin(t.Context(), "POST /ask", time.Now())
		req.End(ctx, req.Timings(time.Now()), Summary{Outcome: Answered, Question: "secret question", Answer: "secret answer"})
		recorded := fmt.Sprint(r.spans.GetSpans())
		if strings.Contains(recorded, "secret question") != on || strings.Contains(recorded, "secret answer") != on {
			t.Errorf("recording %v: %s", on, recorded)
		}
		if strings.Contains(r.log.String(), "secret") {
			t.Errorf("the log holds content: %s", r.log)
		}
	}
}

// TestOutcomes: root span and log row say how it ended; only what is the server's
// fault is an error.
func TestOutcomes(t *testing.T) {
	for outcome, failed := range map[Outcome]bool{
		Answered: false, Refused: false, Rejected: false, Cancelled: false, TimedOut: true, Failed: true,
	} {
		r := newRig(t, false)
		ctx, req := r.Begin(t.Context(), "POST /ask", time.Now())
		req.End(ctx, req.Timings(time.Now()), Summary{ID: "ask_1", Outcome: outcome, ErrorCode: "code", InputTokens: 7})
		root := r.spans.GetSpans()[0]
		if got := root.Status.Code.String() == "Error"; got != failed {
			t.Errorf("%s: the span's status is %v", outcome, root.Status)
		}
		var row map[string]any
		if err := json.Unmarshal([]byte(r.log.String()), &row); err != nil {
			t.Fatal(err)
		}
		if row["outcome"] != string(outcome) || row["msg"] != "query" || row["input_tokens"] != 7.0 ||
			row["trace_id"] != root.SpanContext.TraceID().String() || row["span_id"] != root.SpanContext.SpanID().String() {
			t.Errorf("%s: log row %v", outcome, row)
		}
	}
}

// TestErrorTypesAreFew: an error's text never becomes a label.
func TestErrorTypesAreFew(t *testing.T) {
	for err, want := range map[error]string{
		context.Canceled: "cancelled", fmt.Errorf("x: %w", context.DeadlineExceeded): "timeout", errors.New("user 42 said no"): "error",
	} {
		if got := errorType(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// TestTraceOfTheCaller: a request joins the trace that the caller is in.
func TestTraceOfTheCaller(t *testing.T) {
	r := newRig(t, false)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	ctx := Propagator().Extract(t.Context(), carrier{"traceparent": "00-" + trace + "-b7ad6b7169203331-01"})
	ctx, req := r.Begin(ctx, "POST /ask", time.Now())
	req.End(ctx, req.Timings(time.Now()), Summary{Outcome: Answered})
	if req.TraceID() != trace || r.spans.GetSpans()[0].Parent.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("trace %s", req.TraceID())
	}
}

type carrier map[string]string

func (c carrier) Get(k string) string { return c[k] }
func (c carrier) Set(k, v string)     { c[k] = v }
func (c carrier) Keys() []string      { return nil }

// TestAbandonEndsWhatIsOpen, once, innermost first, and charges it.
func TestAbandonEndsWhatIsOpen(t *testing.T) {
	r := newRig(t, false)
	ctx, req := r.Begin(t.Context(), "POST /ask", time.Now())
	inner, end := req.Begin(ctx, StageRetrieval, "c")
	_, endEmbed := req.Begin(inner, StageEmbed, "m")
	req.Abandon(errors.New("panic"))
	end(nil)
	endEmbed(nil)
	req.Abandon(nil)
	var names []string
	for _, s := range r.spans.GetSpans() {
		names = append(names, s.Name)
		if s.Status.Code.String() != "Error" {
			t.Errorf("%s has the status %v", s.Name, s.Status)
		}
	}
	if strings.Join(names, ", ") != "embeddings m, retrieval c" {
		t.Errorf("spans %v", names)
	}
	timings := req.Timings(time.Now())
	if timings.Stage(StageRetrieval) <= 0 || timings.Stage(StageEmbed) <= 0 {
		t.Errorf("not charged: %+v", timings.Rows())
	}
	req.End(ctx, timings, Summary{Outcome: Failed})
}

// TestShutdownWaitsForRequests that were cut off, so that their spans are there; not
// for ever, and not beyond its context.
func TestShutdownWaitsForRequests(t *testing.T) {
	log := &strings.Builder{}
	fresh := func() *Telemetry {
		tel, err := New(t.Context(), Config{SpanExporter: tracetest.NewInMemoryExporter()}, slog.New(slog.NewJSONHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		return tel
	}
	r := fresh()
	ctx, req := r.Begin(t.Context(), "POST /ask", time.Now())
	time.AfterFunc(30*time.Millisecond, func() { req.End(ctx, req.Timings(time.Now()), Summary{Outcome: Cancelled}) })
	if err := r.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "cancelled") || r.Active() != 0 {
		t.Errorf("shut down before the request ended: %s", log)
	}
	other := fresh()
	octx, left := other.Begin(t.Context(), "POST /ask", time.Now())
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	began := time.Now()
	_ = other.Shutdown(short)
	if took := time.Since(began); took > leaveTime {
		t.Errorf("waited %v for a request that does not end", took)
	}
	left.End(octx, left.Timings(time.Now()), Summary{})
}
