// Package pgtrace measures what is asked of PostgreSQL: a span for each statement of a
// request that is recorded, and the histogram db.client.operation.duration for all.
//
// Names are those of OpenTelemetry's database conventions (stable). A search asks nine
// times, so what a statement's spans have in common is made once and kept.
// Neither parameters nor the text of errors are recorded: both hold content.
package pgtrace

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.41.0/dbconv"
	"go.opentelemetry.io/otel/trace"
)

const scope = "ragd/pgtrace"

// durationBuckets are the conventions' for databases, in seconds.
var durationBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10}

// Tracer is for pgx's ConnConfig.Tracer. It is safe for concurrent use.
type Tracer struct {
	tracer     trace.Tracer
	duration   metric.Float64Histogram
	statements statements
}

var (
	_ pgx.QueryTracer    = (*Tracer)(nil)
	_ pgx.BatchTracer    = (*Tracer)(nil)
	_ pgx.CopyFromTracer = (*Tracer)(nil)
	_ pgx.ConnectTracer  = (*Tracer)(nil)
	_ pgx.PrepareTracer  = (*Tracer)(nil)
)

// New makes a tracer for connections to one database.
func New(tracers trace.TracerProvider, meters metric.MeterProvider, database string) (*Tracer, error) {
	duration := dbconv.ClientOperationDuration{}
	h, err := meters.Meter(scope).Float64Histogram(duration.Name(), metric.WithUnit(duration.Unit()), metric.WithDescription(duration.Description()),
		metric.WithExplicitBucketBoundaries(durationBuckets...))
	if err != nil {
		return nil, fmt.Errorf("pgtrace: %w", err)
	}
	return &Tracer{tracer: tracers.Tracer(scope), duration: h, statements: statements{database: database}}, nil
}

// call is what runs. A nil *call in a context is of what is not measured.
type call struct {
	span    trace.Span // nil where nothing records
	its     *statement
	started time.Time
}

type callKey struct{}

// begin starts a call and its span, which has a parent always: what no request asks,
// such as the first statements of a connection, is in the metric alone.
func (t *Tracer) begin(ctx context.Context, s *statement) context.Context {
	c := &call{its: s, started: time.Now()}
	if trace.SpanFromContext(ctx).IsRecording() {
		ctx, c.span = t.tracer.Start(ctx, s.name, s.start...)
	}
	return context.WithValue(ctx, callKey{}, c)
}

func (t *Tracer) end(ctx context.Context, err error) {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil {
		return
	}
	ended := time.Now()
	measured := c.its.measured
	if err != nil {
		measured = metric.WithAttributeSet(attribute.NewSet(append(c.its.labels(), failure(err)...)...))
	}
	t.duration.Record(ctx, ended.Sub(c.started).Seconds(), measured)
	if c.span == nil {
		return
	}
	if err != nil {
		c.span.SetStatus(codes.Error, "")
		c.span.SetAttributes(failure(err)...)
	}
	c.span.End(trace.WithTimestamp(ended))
}

// TraceQueryStart begins a statement. The bounds of a transaction that only reads are
// a tenth of a millisecond each, a third of a search's statements, and never where time goes,
// so they are left out.
func (t *Tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if t.statements.readsOnly(conn, data.SQL) {
		return context.WithValue(ctx, callKey{}, (*call)(nil))
	}
	return t.begin(ctx, t.statements.of(data.SQL))
}

// TraceQueryEnd ends it once its last row is read.
func (t *Tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	t.end(ctx, data.Err)
}

// TraceBatchStart begins statements that are sent together.
func (t *Tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	texts := make([]string, 0, data.Batch.Len())
	for _, q := range data.Batch.QueuedQueries {
		texts = append(texts, q.SQL)
	}
	return t.begin(ctx, t.statements.batch(texts))
}

// TraceBatchQuery tells nothing: the times of one of them are those of its reader.
func (*Tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd ends them.
func (t *Tracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	t.end(ctx, data.Err)
}

// TraceCopyFromStart begins a COPY.
func (t *Tracer) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromStartData) context.Context {
	return t.begin(ctx, t.statements.of("COPY "+strings.Join(data.TableName, ".")))
}

// TraceCopyFromEnd ends it.
func (t *Tracer) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	t.end(ctx, data.Err)
}

// TraceConnectStart begins a connection, which a request may wait for.
func (t *Tracer) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	return t.begin(ctx, t.statements.named("CONNECT"))
}

// TraceConnectEnd ends it.
func (t *Tracer) TraceConnectEnd(ctx context.Context, data pgx.TraceConnectEndData) {
	t.end(ctx, data.Err)
}

// TracePrepareStart begins the preparation of a statement, once on each connection.
func (t *Tracer) TracePrepareStart(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	return t.begin(ctx, t.statements.named("PREPARE"))
}

// TracePrepareEnd ends it.
func (t *Tracer) TracePrepareEnd(ctx context.Context, _ *pgx.Conn, data pgx.TracePrepareEndData) {
	t.end(ctx, data.Err)
}
