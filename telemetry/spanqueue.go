package telemetry

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// spanQueue keeps finished spans until they are exported in batches, after the same
// variables as the SDK's batch processor. That one hands every span to its goroutine,
// which wakes a thread for each; here they lie in a slice until a batch is full or the
// delay is over. What overflows is counted.
type spanQueue struct {
	exp  sdktrace.SpanExporter
	flow *spanFlow
	batching

	mu      sync.Mutex
	waiting []sdktrace.ReadOnlySpan
	stopped bool

	exporting sync.Mutex
	full      chan struct{} // has a value when a batch is full
	stop      chan struct{}
	done      chan struct{} // closed when the loop has ended
}

// batching is what the variables OTEL_BSP_* say.
type batching struct {
	bound, size    int           // spans that wait, spans of a batch
	delay, timeout time.Duration // between exports, of one export
}

func newSpanQueue(exp sdktrace.SpanExporter, flow *spanFlow, how batching) *spanQueue {
	q := &spanQueue{exp: exp, flow: flow, batching: how, full: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go q.loop()
	return q
}

// OnStart is part of the SDK's interface.
func (*spanQueue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd takes a finished span in, or counts it as dropped.
func (q *spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	q.mu.Lock()
	if q.stopped || q.flow.waiting.Load() >= int64(q.bound) {
		q.mu.Unlock()
		q.flow.overflow.Add(1)
		return
	}
	q.flow.waiting.Add(1)
	q.waiting = append(q.waiting, s)
	full := len(q.waiting) == q.size
	q.mu.Unlock()
	if full {
		select {
		case q.full <- struct{}{}:
		default: // it knows
		}
	}
}

func (q *spanQueue) loop() {
	defer close(q.done)
	tick := time.NewTicker(q.delay)
	defer tick.Stop()
	for {
		select {
		case <-q.stop:
			return
		case <-tick.C:
		case <-q.full:
		}
		if err := q.export(context.Background()); err != nil {
			otel.Handle(err)
		}
	}
}

// export hands on what waits, in batches.
func (q *spanQueue) export(ctx context.Context) error {
	q.exporting.Lock()
	defer q.exporting.Unlock()
	q.mu.Lock()
	left := q.waiting
	q.waiting = make([]sdktrace.ReadOnlySpan, 0, q.size)
	q.mu.Unlock()
	var first error
	for len(left) > 0 {
		n := min(q.size, len(left))
		if err := q.send(ctx, left[:n]); err != nil && first == nil {
			first = err
		}
		left = left[n:]
	}
	return first
}

func (q *spanQueue) send(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	err := q.exp.ExportSpans(ctx, batch)
	n := int64(len(batch))
	q.flow.waiting.Add(-n)
	if err != nil {
		q.flow.failed.Add(n)
		return err
	}
	q.flow.exported.Add(n)
	return nil
}

// ForceFlush exports what waits.
func (q *spanQueue) ForceFlush(ctx context.Context) error { return q.until(ctx, q.export) }

// Shutdown exports what waits and stops the exporter; spans that end later are dropped.
func (q *spanQueue) Shutdown(ctx context.Context) error {
	q.mu.Lock()
	again := q.stopped
	q.stopped = true
	q.mu.Unlock()
	if again {
		return nil
	}
	close(q.stop)
	return q.until(ctx, func(ctx context.Context) error {
		<-q.done
		err := q.export(ctx)
		if err2 := q.exp.Shutdown(ctx); err == nil {
			err = err2
		}
		return err
	})
}

// until waits for work no longer than ctx, which an exporter may not heed.
func (*spanQueue) until(ctx context.Context, work func(context.Context) error) error {
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
