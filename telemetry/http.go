package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Incoming reads the trace context that callers send. Where callers are trusted a
// request joins the caller's trace; else it begins a trace of its own that links to
// the caller's, whose sampling flag and baggage then decide nothing.
func (t *Telemetry) Incoming() propagation.TextMapPropagator {
	if t.cfg.TrustTraceparent {
		return Propagator()
	}
	return linking{Propagator()}
}

// linking notes the caller's span for a link and leaves the rest of what it sent.
type linking struct{ propagation.TextMapPropagator }

// Extract reads W3C trace context.
func (linking) Extract(ctx context.Context, from propagation.TextMapCarrier) context.Context {
	caller := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), from))
	if !caller.IsValid() {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, caller)
}

type callerKey struct{}

// linked is the option that links a new span to the caller's.
func linked(ctx context.Context, opts []trace.SpanStartOption) []trace.SpanStartOption {
	if caller, ok := ctx.Value(callerKey{}).(trace.SpanContext); ok {
		return append(opts, trace.WithLinks(trace.Link{SpanContext: caller}))
	}
	return opts
}

// ServerTracers are for an HTTP instrumentation, which makes a server span for every
// request. Those for which quiet reports true by the span's name get none: the
// question road begins its own, with the times of the ledger, and probes need none.
func (t *Telemetry) ServerTracers(quiet func(name string) bool) trace.TracerProvider {
	return serverTracers{t.tracers, quiet}
}

type serverTracers struct {
	trace.TracerProvider
	quiet func(name string) bool
}

func (p serverTracers) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	return serverTracer{p.TracerProvider.Tracer(name, opts...), p.quiet}
}

type serverTracer struct {
	trace.Tracer
	quiet func(name string) bool
}

// Start begins a span, or none.
func (s serverTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if s.quiet(name) {
		return ctx, noop.Span{}
	}
	return s.Tracer.Start(ctx, name, linked(ctx, opts)...)
}

// serverViews give HTTP metrics of an instrumentation ragd's bounds: buckets that
// reach as far as streams do, and no histograms of body sizes.
func serverViews() []sdkmetric.View {
	return []sdkmetric.View{
		sdkmetric.NewView(sdkmetric.Instrument{Name: metricHTTPDuration}, sdkmetric.Stream{
			Aggregation: sdkmetric.AggregationExplicitBucketHistogram{Boundaries: httpBuckets},
		}),
		sdkmetric.NewView(sdkmetric.Instrument{Name: "http.server.*.body.size"}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}}),
	}
}
