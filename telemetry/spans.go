package telemetry

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// spanQueue holds bursts: the SDK's default of 2,048 spans loses most of a
// saturated service's spans in silence.
const spanQueue = 16384

// spanFlow counts what becomes of spans. The batch processor of the SDK drops
// what overflows its queue and says nothing, so the flow keeps the queue's bound
// itself and counts what it turns away.
type spanFlow struct {
	bound                               int64
	waiting, exported, overflow, failed atomic.Int64
}

// batching exports in batches through exp.
func (f *spanFlow) batching(exp sdktrace.SpanExporter) sdktrace.SpanProcessor {
	f.bound = int64(queueSize())
	return &spanGate{
		SpanProcessor: sdktrace.NewBatchSpanProcessor(&countedExporter{exp, f}, sdktrace.WithMaxQueueSize(int(f.bound))),
		flow:          f,
	}
}

// queueSize is the standard variable's value where it is set.
func queueSize() int {
	if n, err := strconv.Atoi(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")); err == nil && n > 0 {
		return n
	}
	return spanQueue
}

// spanGate turns spans away when as many wait as the queue behind it holds.
type spanGate struct {
	sdktrace.SpanProcessor
	flow *spanFlow
}

// OnEnd takes a finished span in, or counts it as dropped.
func (g *spanGate) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if g.flow.waiting.Add(1) > g.flow.bound {
		g.flow.waiting.Add(-1)
		g.flow.overflow.Add(1)
		return
	}
	g.SpanProcessor.OnEnd(s)
}

// countedExporter counts what leaves.
type countedExporter struct {
	sdktrace.SpanExporter
	flow *spanFlow
}

// ExportSpans hands the batch on.
func (e *countedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	n := int64(len(spans))
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.flow.waiting.Add(-n)
	if err != nil {
		e.flow.failed.Add(n)
		return err
	}
	e.flow.exported.Add(n)
	return nil
}

// watch registers the counters.
func (f *spanFlow) watch(m metric.Meter) error {
	exported, err := m.Int64ObservableCounter(metricSpansExported, metric.WithUnit("{span}"), metric.WithDescription("spans that an exporter took"))
	dropped, err2 := m.Int64ObservableCounter(metricSpansDropped, metric.WithUnit("{span}"), metric.WithDescription("spans lost, by reason: the queue was full or the export failed"))
	_, err3 := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(exported, f.exported.Load())
		o.ObserveInt64(dropped, f.overflow.Load(), metric.WithAttributes(attribute.String("reason", "queue_full")))
		o.ObserveInt64(dropped, f.failed.Load(), metric.WithAttributes(attribute.String("reason", "export_failed")))
		return nil
	}, exported, dropped)
	return errors.Join(err, err2, err3)
}
