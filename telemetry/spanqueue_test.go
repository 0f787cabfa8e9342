package telemetry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// countingExporter notes the sizes of batches; a batch takes as long as it is told.
type countingExporter struct {
	batches []int
	takes   time.Duration
	down    bool
}

func (e *countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	select {
	case <-time.After(e.takes):
		e.batches = append(e.batches, len(spans))
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *countingExporter) Shutdown(context.Context) error { e.down = true; return nil }

// queued is a provider whose spans go through a queue of its own.
func queued(exp sdktrace.SpanExporter, how batching) (make func(n int), q *spanQueue, flow *spanFlow) {
	flow = &spanFlow{}
	q = newSpanQueue(exp, flow, how)
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(q)).Tracer("test")
	return func(n int) {
		for range n {
			_, s := tracer.Start(context.Background(), "s")
			s.End()
		}
	}, q, flow
}

// TestBatchesLeaveWhenFullOrLate: a full batch leaves at once, what is less after the
// delay, and all of it at the end.
func TestBatchesLeaveWhenFullOrLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exp := &countingExporter{}
		end, q, flow := queued(exp, batching{bound: 1000, size: 10, delay: time.Minute, timeout: time.Second})
		want := func(when string, n int64) {
			t.Helper()
			synctest.Wait()
			if got := flow.exported.Load(); got != n {
				t.Errorf("%s %d spans have left, want %d", when, got, n)
			}
		}
		end(9)
		want("with less than a batch", 0)
		end(1)
		want("with a batch", 10)
		end(4)
		time.Sleep(59 * time.Second)
		want("before the delay is over", 10)
		time.Sleep(2 * time.Second)
		want("after the delay", 14)
		end(3)
		if err := q.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
		want("when asked to", 17)
		end(25)
		end(3)
		if err := q.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		want("at the end", 45)
		for _, n := range exp.batches {
			if n > 10 {
				t.Errorf("batches of %v spans", exp.batches)
			}
		}
		end(2)
		if !exp.down || flow.overflow.Load() != 2 || flow.waiting.Load() != 0 {
			t.Errorf("after the end: exporter down %v, %d counted as dropped, %d wait", exp.down, flow.overflow.Load(), flow.waiting.Load())
		}
		if err := q.Shutdown(t.Context()); err != nil {
			t.Errorf("a second end: %v", err)
		}
	})
}

// TestExportHasItsTime: an export that takes longer has failed, and the end of the
// process waits for nobody beyond its own time.
func TestExportHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exp := &countingExporter{takes: time.Hour}
		end, q, flow := queued(exp, batching{bound: 100, size: 10, delay: time.Minute, timeout: 5 * time.Second})
		end(10)
		time.Sleep(6 * time.Second)
		if got := flow.failed.Load(); got != 10 {
			t.Errorf("%d spans failed", got)
		}
		end(5)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end says %v", err)
		}
		synctest.Wait()
		if flow.failed.Load() != 15 || flow.waiting.Load() != 0 {
			t.Errorf("%d failed, %d wait", flow.failed.Load(), flow.waiting.Load())
		}
	})
}
