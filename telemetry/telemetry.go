// Package telemetry says where the milliseconds went. One Timings value a
// request feeds the span tree, the metrics, the log row, Server-Timing and the
// response body, so they cannot disagree.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// Config chooses what is recorded. Exporters, sampling and resource attributes
// follow the standard OTEL_ environment variables.
type Config struct {
	Version string
	// RecordContent puts questions and answers on spans. Off by default.
	RecordContent bool
	// TrustTraceparent lets requests join the trace that their caller names. Off,
	// they link to it.
	TrustTraceparent bool
	// Off records nothing, so that it can be measured what recording costs. Trace ids
	// are then zeros.
	Off bool
	// SpanExporter replaces the exporter that the environment names; for tests.
	SpanExporter sdktrace.SpanExporter
}

// Telemetry owns the providers of a process.
type Telemetry struct {
	cfg      Config
	log      *slog.Logger
	tracers  tracerProvider
	meters   meterProvider
	tracer   trace.Tracer
	meter    metric.Meter
	metrics  *metrics
	registry *prometheus.Registry
	recent   *recent
	started  time.Time
	active   atomic.Int64
	flow     spanFlow
	ingest   *ingestMetrics
	served   *served

	stageSpans stageSpans
}

// What of the SDK's providers is used.
type (
	tracerProvider interface {
		trace.TracerProvider
		Shutdown(ctx context.Context) error
	}
	meterProvider interface {
		metric.MeterProvider
		Shutdown(ctx context.Context) error
	}
)

// off are providers that record nothing.
type (
	offTracers struct{ nooptrace.TracerProvider }
	offMeters  struct{ noopmetric.MeterProvider }
)

func (offTracers) Shutdown(context.Context) error { return nil }
func (offMeters) Shutdown(context.Context) error  { return nil }

// New sets up tracing and metrics. Without OTEL_TRACES_EXPORTER or an OTLP
// endpoint in the environment spans are made (so trace ids exist) and dropped.
func New(ctx context.Context, cfg Config, log *slog.Logger) (*Telemetry, error) {
	res, err := serviceResource(ctx, cfg.Version)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{cfg: cfg, log: log, registry: newRegistry(), recent: newRecent(recentRows), started: time.Now()}
	if t.tracers, err = newTracers(ctx, cfg, res, &t.flow); err != nil {
		return nil, err
	}
	if t.meters, err = newMeters(ctx, cfg, t.registry, res); err != nil {
		return nil, errors.Join(err, t.tracers.Shutdown(ctx))
	}
	t.tracer = t.tracers.Tracer(scope)
	t.meter = t.meters.Meter(scope)
	if err := t.instruments(); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	return t, nil
}

// newRegistry has what the system knows of the process: processor time, memory, open
// files. These are served at /metrics alone; OpenTelemetry's collector has a receiver
// of its own for them.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

func (t *Telemetry) instruments() error {
	var err, err2 error
	t.metrics, err = newMetrics(t.meter)
	t.ingest, err2 = newIngestMetrics(t.meter)
	var err4 error
	t.served, err4 = newServed(t.meter)
	_, err3 := t.meter.Int64ObservableGauge(metricActive, metric.WithUnit("{request}"), metric.WithDescription("requests between receipt and last byte"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(t.active.Load())
			return nil
		}))
	return errors.Join(err, err2, err3, err4, t.flow.watch(t.meter))
}

func serviceResource(ctx context.Context, version string) (*resource.Resource, error) {
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "ragd"), attribute.String("service.version", version)),
		resource.WithFromEnv(), // last, so that OTEL_SERVICE_NAME wins
	)
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("telemetry: resource: %w", err)
	}
	return res, nil
}

func newTracers(ctx context.Context, cfg Config, res *resource.Resource, flow *spanFlow) (tracerProvider, error) {
	if cfg.Off {
		return offTracers{}, nil
	}
	opts := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	switch {
	case cfg.SpanExporter != nil:
		opts = append(opts, sdktrace.WithSyncer(cfg.SpanExporter))
	case exporting("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
		exp, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			return nil, fmt.Errorf("telemetry: span exporter (OTEL_TRACES_EXPORTER is %q): %w", os.Getenv("OTEL_TRACES_EXPORTER"), err)
		}
		if !autoexport.IsNoneSpanExporter(exp) {
			opts = append(opts, sdktrace.WithSpanProcessor(flow.batching(exp)))
		}
	}
	return sdktrace.NewTracerProvider(opts...), nil
}

func newMeters(ctx context.Context, cfg Config, reg *prometheus.Registry, res *resource.Resource) (meterProvider, error) {
	if cfg.Off {
		return offMeters{}, nil
	}
	prom, err := otelprom.New(otelprom.WithRegisterer(reg), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("telemetry: prometheus: %w", err)
	}
	opts := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(prom)}
	if exporting("OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT") {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return nil, fmt.Errorf("telemetry: metric exporter (OTEL_METRICS_EXPORTER is %q): %w", os.Getenv("OTEL_METRICS_EXPORTER"), err)
		}
		if !autoexport.IsNoneMetricReader(reader) {
			opts = append(opts, sdkmetric.WithReader(reader))
		}
	}
	return sdkmetric.NewMeterProvider(opts...), nil
}

// exporting reports whether the environment asks for an exporter: by name, or by
// giving an endpoint. A bare process stays quiet instead of knocking at
// localhost:4318.
func exporting(exporter, endpoint string) bool {
	if v := os.Getenv(exporter); v != "" {
		return v != "none"
	}
	return os.Getenv(endpoint) != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != ""
}

// Propagator reads and writes W3C trace context and baggage.
func Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
}

// TracerProvider is for libraries that make spans of their own (database calls).
func (t *Telemetry) TracerProvider() trace.TracerProvider { return t.tracers }

// MeterProvider is for libraries that have instruments of their own (database pool).
func (t *Telemetry) MeterProvider() metric.MeterProvider { return t.meters }

// Meter is for instruments that other packages register.
func (t *Telemetry) Meter() metric.Meter { return t.meter }

// Handler serves the metrics in the Prometheus and OpenMetrics formats, the
// latter with exemplars.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{EnableOpenMetrics: true, Timeout: 10 * time.Second})
}

// leaveTime is how long Shutdown waits for requests that were cut off to end: their
// spans would be lost otherwise.
const leaveTime = 2 * time.Second

// Shutdown waits a moment for running requests, flushes what is queued and stops the
// exporters.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	for t.Active() > 0 && wait.Err() == nil {
		select {
		case <-wait.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	return errors.Join(t.tracers.Shutdown(ctx), t.meters.Shutdown(ctx))
}
