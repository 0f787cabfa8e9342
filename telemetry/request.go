package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Request measures one question from receipt to last byte and writes its span
// tree. Every span's start and end are the very times the Timings are made of.
// It is safe for concurrent use: dense and lexical search run side by side.
type Request struct {
	t        *Telemetry
	root     trace.Span
	route    string
	received time.Time

	mu         sync.Mutex
	stage      [stages]time.Duration
	ran        []run
	open       []*part
	firstWrite time.Time
	engine     EngineTimes
}

// EngineTimes are the engine's own stamps of one generation; zero where the
// generation did not come that far.
type EngineTimes struct {
	Submitted, Scheduled, FirstToken, Last time.Time
	OutputTokens                           int
	// Preemptions is how often the answer paused after its start for others, Preempted
	// for how long; that time is part of prefill and decode.
	Preemptions int
	Preempted   time.Duration
}

// Begin starts a request named like its route ("POST /ask") that was received
// at the given time.
func (t *Telemetry) Begin(ctx context.Context, name string, received time.Time) (context.Context, *Request) {
	ctx, root := t.tracer.Start(ctx, name, linked(ctx, []trace.SpanStartOption{trace.WithTimestamp(received), trace.WithSpanKind(trace.SpanKindServer)})...)
	t.active.Add(1)
	return ctx, &Request{t: t, root: root, route: name, received: received, ran: make([]run, 0, typicalRuns)}
}

// TraceID is the request's trace id in hex; it is set even when nothing is exported.
func (r *Request) TraceID() string { return r.root.SpanContext().TraceID().String() }

// SpanID is the id of the request's root span in hex.
func (r *Request) SpanID() string { return r.root.SpanContext().SpanID().String() }

// Begin starts a stage and its span; the returned function ends both. subject is
// the model or collection that the conventions put into the span's name, and may
// be empty.
func (r *Request) Begin(ctx context.Context, s Stage, subject string) (context.Context, func(error)) {
	start := time.Now()
	its := r.t.stageSpans.of(s, subject)
	ctx, span := r.t.tracer.Start(ctx, its.name, its.kind, its.attrs, trace.WithTimestamp(start))
	return ctx, r.opened(&part{span: span, stage: s, measured: true, from: start})
}

// part is a span that has not ended, and the stage that it measures if it does.
type part struct {
	span     trace.Span
	stage    Stage
	measured bool
	from     time.Time
}

func (r *Request) opened(p *part) (end func(error)) {
	r.mu.Lock()
	r.open = append(r.open, p)
	r.mu.Unlock()
	return func(err error) { r.close(p, err, time.Now()) }
}

// close ends a part, once.
func (r *Request) close(p *part, err error, at time.Time) {
	r.mu.Lock()
	i := slices.Index(r.open, p)
	if i >= 0 {
		r.open = slices.Delete(r.open, i, i+1)
	}
	r.mu.Unlock()
	if i < 0 {
		return
	}
	if p.measured {
		r.add(p.stage, p.from, at)
	}
	endSpan(p.span, err, at)
}

// Abandon ends what is still open, the innermost first, as what err cut short: after
// a panic nobody else does.
func (r *Request) Abandon(err error) {
	at := time.Now()
	r.mu.Lock()
	left := slices.Clone(r.open)
	r.mu.Unlock()
	for _, p := range slices.Backward(left) {
		r.close(p, err, at)
	}
}

// run is one run of a stage.
type run struct {
	stage    Stage
	from, to time.Time
}

const (
	// typicalRuns is how often stages run in one question: pack runs twice.
	typicalRuns = int(stages) + 1
	// maxRuns bounds what one request keeps for its waterfall.
	maxRuns = 64
)

func (r *Request) add(s Stage, from, to time.Time) {
	r.mu.Lock()
	r.stage[s] += to.Sub(from)
	if len(r.ran) < maxRuns {
		r.ran = append(r.ran, run{s, from, to})
	}
	r.mu.Unlock()
}

// intervals lists the runs of the stages, from the receipt of the request.
func (r *Request) intervals() []Interval {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Interval, len(r.ran))
	for i, s := range r.ran {
		out[i] = Interval{Stage: s.stage.String(), StartMS: ms(s.from.Sub(r.received)), MS: ms(s.to.Sub(s.from))}
	}
	return out
}

// FirstWrite marks the moment the first token of the answer was written to the
// client; later calls change nothing.
func (r *Request) FirstWrite(at time.Time) {
	r.mu.Lock()
	if r.firstWrite.IsZero() {
		r.firstWrite = at
	}
	r.mu.Unlock()
}

// Generation records the engine's stamps and writes queue, prefill and decode as
// children of the span in ctx, which is the chat span. A generation that ended
// early is charged to the stage it was in, until the given end.
func (r *Request) Generation(ctx context.Context, e EngineTimes, end time.Time) {
	if e.Submitted.IsZero() {
		return
	}
	if !e.Last.IsZero() {
		end = e.Last
	}
	r.interval(ctx, StageQueue, e.Submitted, orElse(e.Scheduled, end))
	if !e.Scheduled.IsZero() {
		r.interval(ctx, StagePrefill, e.Scheduled, orElse(e.FirstToken, end))
	}
	if !e.FirstToken.IsZero() {
		r.interval(ctx, StageDecode, e.FirstToken, end)
	}
	if e.Preemptions > 0 {
		trace.SpanFromContext(ctx).SetAttributes(attribute.Int(attrPreemptions, e.Preemptions), attribute.Float64(attrPreemptedMS, ms(e.Preempted)))
	}
	r.mu.Lock()
	e.Last = end
	r.engine = e
	r.mu.Unlock()
}

func (r *Request) interval(ctx context.Context, s Stage, from, to time.Time) {
	if to.Before(from) {
		to = from
	}
	its := r.t.stageSpans.of(s, "")
	_, span := r.t.tracer.Start(ctx, its.name, its.kind, its.attrs, trace.WithTimestamp(from))
	span.End(trace.WithTimestamp(to))
	r.add(s, from, to)
}

// Server is where a model runs: the host and port that are called. The zero value is
// this process.
type Server struct {
	Address string
	Port    int
}

// Call is what a call to a model came to; zero where it came to nothing.
type Call struct {
	InputTokens, OutputTokens, CachedTokens int
	FinishReason                            string
}

// attributes are those of what there is.
func (c Call) attributes() []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 4)
	if c.FinishReason != "" {
		attrs = append(attrs, attribute.StringSlice(attrFinishReasons, []string{c.FinishReason}))
	}
	if c.OutputTokens > 0 {
		attrs = append(attrs, attribute.Int(attrInputTokens, c.InputTokens), attribute.Int(attrOutputTokens, c.OutputTokens), attribute.Int(attrCachedTokens, c.CachedTokens))
	}
	return attrs
}

// Chat opens the span of a call to a model, which holds render, queue, prefill and
// decode. It is not a stage of its own. A call to another server is one of kind CLIENT.
// The function that it returns ends the span, with what the call came to.
func (r *Request) Chat(ctx context.Context, model string, at Server) (context.Context, func(Call, error)) {
	kind, attrs := trace.SpanKindInternal, []attribute.KeyValue{attribute.String(attrOperation, operationChat), attribute.String(attrRequestModel, model)}
	if at == (Server{}) {
		attrs = append(attrs, attribute.String(attrProvider, provider))
	} else {
		kind = trace.SpanKindClient
		attrs = append(attrs, attribute.String(attrProvider, providerOpenAI), attribute.String(attrServerAddress, at.Address), attribute.Int(attrServerPort, at.Port))
	}
	ctx, span := r.t.tracer.Start(ctx, "chat "+model, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
	end := r.opened(&part{span: span})
	return ctx, func(c Call, err error) {
		span.SetAttributes(c.attributes()...)
		end(err)
	}
}

// Timings is the ledger as of the given time.
func (r *Request) Timings(now time.Time) Timings {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := Timings{stage: r.stage, Total: now.Sub(r.received)}
	if !r.engine.FirstToken.IsZero() {
		t.LLMTTFT = r.engine.FirstToken.Sub(r.engine.Submitted)
		if n := r.engine.OutputTokens; n >= 2 {
			t.TPOT = r.stage[StageDecode] / time.Duration(n-1)
		}
	}
	if !r.firstWrite.IsZero() {
		t.TTFT = r.firstWrite.Sub(r.received)
	}
	return t
}

func endSpan(span trace.Span, err error, at time.Time) {
	if err != nil {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String(attrErrorType, errorType(err)))
	}
	span.End(trace.WithTimestamp(at))
}

func orElse(t, other time.Time) time.Time {
	if t.IsZero() {
		return other
	}
	return t
}
