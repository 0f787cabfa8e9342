package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ingestMetrics are the instruments of the document road. Rates are derivatives
// of the counters; lag is how long the oldest run has had documents to settle.
type ingestMetrics struct {
	bytes, chunks, tokens, documents metric.Int64Counter
	duration                         metric.Float64Histogram

	mu   sync.Mutex
	runs map[*Ingest]struct{}
}

// Ingest measures one run of the document road.
type Ingest struct {
	m       *ingestMetrics
	started time.Time
	last    IngestProgress // guarded by m.mu
}

// IngestProgress is where a run stands, counted from its start.
type IngestProgress struct {
	// Settled of Found documents are stored, skipped or failed.
	Settled, Found int
	Bytes          int64
	Chunks, Tokens int
}

// IngestOutcome says how many documents ended how.
type IngestOutcome struct{ Indexed, Unchanged, Skipped, Failed, Pruned int }

func newIngestMetrics(m metric.Meter) (*ingestMetrics, error) {
	var errs []error
	counter := func(name, unit, what string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	duration, err := m.Float64Histogram(metricIngestDuration, metric.WithUnit("s"), metric.WithDescription("one run of ingest"),
		metric.WithExplicitBucketBoundaries(ingestBuckets...))
	out := &ingestMetrics{
		bytes:     counter(metricIngestBytes, "By", "bytes of settled documents"),
		chunks:    counter(metricIngestChunks, "{chunk}", "chunks stored"),
		tokens:    counter(metricIngestTokens, "{token}", "tokens given to the embedding model by ingest"),
		documents: counter(metricIngestDocuments, "{document}", "documents by how they ended"),
		duration:  duration, runs: map[*Ingest]struct{}{},
	}
	return out, errors.Join(append(errs, err, out.watch(m))...)
}

func (m *ingestMetrics) watch(meter metric.Meter) error {
	pending, err := meter.Int64ObservableGauge(metricIngestPending, metric.WithUnit("{document}"), metric.WithDescription("documents found and not settled yet"))
	lag, err2 := meter.Float64ObservableGauge(metricIngestLag, metric.WithUnit("s"), metric.WithDescription("how long the oldest run has had documents to settle"))
	_, err3 := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		documents, oldest := m.backlog(time.Now())
		o.ObserveInt64(pending, int64(documents))
		o.ObserveFloat64(lag, oldest.Seconds())
		return nil
	}, pending, lag)
	return errors.Join(err, err2, err3)
}

func (m *ingestMetrics) backlog(now time.Time) (documents int, oldest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.runs {
		left := r.last.Found - r.last.Settled
		documents += left
		if left > 0 {
			oldest = max(oldest, now.Sub(r.started))
		}
	}
	return documents, oldest
}

// BeginIngest starts to measure a run; End must follow.
func (t *Telemetry) BeginIngest() *Ingest {
	m := t.ingest
	r := &Ingest{m: m, started: time.Now()}
	m.mu.Lock()
	m.runs[r] = struct{}{}
	m.mu.Unlock()
	return r
}

// Progress moves the run on to p.
func (r *Ingest) Progress(ctx context.Context, p IngestProgress) {
	r.m.mu.Lock()
	was := r.last
	r.last = p
	r.m.mu.Unlock()
	r.m.bytes.Add(ctx, p.Bytes-was.Bytes)
	r.m.chunks.Add(ctx, int64(p.Chunks-was.Chunks))
	r.m.tokens.Add(ctx, int64(p.Tokens-was.Tokens))
}

// End closes the run.
func (r *Ingest) End(ctx context.Context, o IngestOutcome) {
	r.m.mu.Lock()
	delete(r.m.runs, r)
	r.m.mu.Unlock()
	r.m.duration.Record(ctx, time.Since(r.started).Seconds())
	for status, n := range map[string]int{
		"indexed": o.Indexed, "unchanged": o.Unchanged, "skipped": o.Skipped, "failed": o.Failed, "pruned": o.Pruned,
	} {
		r.m.documents.Add(ctx, int64(n), metric.WithAttributes(attribute.String("status", status)))
	}
}
