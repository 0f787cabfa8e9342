package telemetry

import (
	"context"
	"errors"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// gatedExporter takes spans only while its gate is open.
type gatedExporter struct {
	gate chan struct{}
	err  error

	mu    sync.Mutex
	spans int
}

func (e *gatedExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	select {
	case <-e.gate:
	case <-ctx.Done():
		return ctx.Err()
	}
	e.mu.Lock()
	e.spans += len(spans)
	e.mu.Unlock()
	return e.err
}

func (*gatedExporter) Shutdown(context.Context) error { return nil }

// Whatever the exporter does, every span is counted exactly once.
func TestEverySpanIsAccountedFor(t *testing.T) {
	const made, queue = 900, 100
	for name, c := range map[string]struct {
		err      error
		overflow bool
	}{
		"taken": {}, "failed": {err: errors.New("down")}, "stalled": {overflow: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "2000")
			if c.overflow {
				t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
			}
			exp := &gatedExporter{gate: make(chan struct{}), err: c.err}
			if !c.overflow {
				close(exp.gate)
			}
			var flow spanFlow
			tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(flow.batching(exp)))
			tracer := tp.Tracer("test")
			for range made {
				_, s := tracer.Start(context.Background(), "s")
				s.End()
			}
			if c.overflow {
				if lost := flow.overflow.Load(); lost != made-queue {
					t.Errorf("%d spans were turned away, want %d", lost, made-queue)
				}
				close(exp.gate)
			}
			if err := tp.Shutdown(context.Background()); err != nil && c.err == nil {
				t.Fatal(err)
			}
			exported, failed, overflow := flow.exported.Load(), flow.failed.Load(), flow.overflow.Load()
			if exported+failed+overflow != made || flow.waiting.Load() != 0 {
				t.Errorf("exported %d, failed %d, turned away %d of %d; %d wait", exported, failed, overflow, made, flow.waiting.Load())
			}
			if (failed > 0) != (c.err != nil) || (overflow > 0) != c.overflow {
				t.Errorf("exported %d, failed %d, turned away %d", exported, failed, overflow)
			}
		})
	}
}

func TestUnsampledSpansDoNotCount(t *testing.T) {
	var flow spanFlow
	exp := &gatedExporter{gate: make(chan struct{})}
	close(exp.gate)
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(flow.batching(exp)), sdktrace.WithSampler(sdktrace.NeverSample()))
	for range 10 {
		_, s := tp.Tracer("test").Start(context.Background(), "s")
		s.End()
	}
	if err := tp.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := flow.exported.Load() + flow.overflow.Load() + flow.failed.Load(); n != 0 || exp.spans != 0 {
		t.Errorf("%d spans were counted, %d exported", n, exp.spans)
	}
}
