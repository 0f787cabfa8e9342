package telemetry

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// spanBound holds bursts: the SDK's default of 2,048 spans loses most of a
// saturated service's spans in silence.
const spanBound = 16384

// The SDK's defaults of OTEL_BSP_MAX_EXPORT_BATCH_SIZE, _SCHEDULE_DELAY and _EXPORT_TIMEOUT.
const (
	spanBatch   = 512
	spanDelay   = 5 * time.Second
	spanTimeout = 30 * time.Second
)

// spanFlow counts what becomes of spans.
type spanFlow struct{ waiting, exported, overflow, failed atomic.Int64 }

// batching exports in batches through exp.
func (f *spanFlow) batching(exp sdktrace.SpanExporter) sdktrace.SpanProcessor {
	how := batching{
		bound: envNumber("OTEL_BSP_MAX_QUEUE_SIZE", spanBound), size: envNumber("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", spanBatch),
		delay:   envMilliseconds("OTEL_BSP_SCHEDULE_DELAY", spanDelay),
		timeout: envMilliseconds("OTEL_BSP_EXPORT_TIMEOUT", spanTimeout),
	}
	how.size = min(how.size, how.bound)
	return newSpanQueue(exp, f, how)
}

// envNumber is a standard variable's value where it is set to a positive number.
func envNumber(name string, other int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return other
}

func envMilliseconds(name string, other time.Duration) time.Duration {
	return time.Duration(envNumber(name, int(other.Milliseconds()))) * time.Millisecond
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
