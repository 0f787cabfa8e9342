package telemetry

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/httpconv"
	"go.opentelemetry.io/otel/trace"
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
// request that it is given.
func (t *Telemetry) ServerTracers() trace.TracerProvider { return serverTracers{t.tracers} }

type serverTracers struct{ trace.TracerProvider }

func (p serverTracers) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	return serverTracer{p.TracerProvider.Tracer(name, opts...)}
}

type serverTracer struct{ trace.Tracer }

// Start begins a span that links to the caller's.
func (s serverTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	return s.Tracer.Start(ctx, name, linked(ctx, opts)...)
}

// Served is an HTTP request that was answered.
type Served struct {
	// Route is the pattern that matched, empty where none did. Protocol is as in
	// "HTTP/1.1".
	Method, Route, Protocol string
	TLS                     bool
	Status                  int
	Took                    time.Duration
}

// Served records the metric http.server.request.duration.
func (t *Telemetry) Served(ctx context.Context, s Served) {
	t.served.record(ctx, s)
}

// served is the metric of HTTP and its labels, made once for each kind of request.
type served struct {
	duration metric.Float64Histogram
	kept     sync.Map // Served without Took → metric.MeasurementOption
	count    atomic.Int64
}

// mostServed bounds the kept labels: routes by status are a hundred or so.
const mostServed = 1024

func newServed(m metric.Meter) (*served, error) {
	d := httpconv.ServerRequestDuration{}
	h, err := m.Float64Histogram(d.Name(), metric.WithUnit(d.Unit()), metric.WithDescription(d.Description()), metric.WithExplicitBucketBoundaries(httpBuckets...))
	return &served{duration: h}, err
}

func (m *served) record(ctx context.Context, s Served) {
	took := s.Took
	s.Took = 0
	s.Method = knownMethod(s.Method)
	kept, ok := m.kept.Load(s)
	if !ok {
		kept = metric.WithAttributeSet(attribute.NewSet(s.labels()...))
		if m.count.Load() < mostServed {
			m.count.Add(1)
			m.kept.Store(s, kept)
		}
	}
	m.duration.Record(ctx, took.Seconds(), kept.(metric.MeasurementOption))
}

// labels are those of the convention. The server's name is ragd's own: what the
// caller calls it would be a label of the caller's choice.
func (s Served) labels() []attribute.KeyValue {
	name, version, _ := strings.Cut(s.Protocol, "/")
	if major, minor, _ := strings.Cut(version, "."); major != "1" && minor == "0" {
		version = major // as the convention has it: 1.1, 2, 3
	}
	scheme := "http"
	if s.TLS {
		scheme = "https"
	}
	out := []attribute.KeyValue{
		semconv.HTTPRequestMethodKey.String(s.Method), semconv.URLScheme(scheme), semconv.ServerAddress("ragd"),
		semconv.NetworkProtocolName(strings.ToLower(name)), semconv.NetworkProtocolVersion(version), semconv.HTTPResponseStatusCode(s.Status),
	}
	if s.Route != "" {
		out = append(out, semconv.HTTPRoute(s.Route))
	}
	if s.Status >= http.StatusInternalServerError {
		out = append(out, semconv.ErrorTypeKey.String(strconv.Itoa(s.Status)))
	}
	return out
}

// knownMethod is a method of RFC 9110 or PATCH, or what the convention has for others.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace, http.MethodPatch:
		return method
	}
	return "_OTHER"
}
