package pgtrace

import (
	"context"
	"testing"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"

	"ragd/internal/testenv"
)

// BenchmarkStatement is what a statement's span and its point in the histogram cost,
// each alone, beside otelpgx.
//
//	go test -run '^$' -bench Statement ./telemetry/pgtrace
func BenchmarkStatement(b *testing.B) {
	spans, points := trace.TracerProvider(sdktrace.NewTracerProvider()), metric.MeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())))
	noSpans, noPoints := trace.TracerProvider(nooptrace.NewTracerProvider()), metric.MeterProvider(noopmetric.NewMeterProvider())
	conn, err := testenv.Database(b).Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	for _, c := range []struct {
		name   string
		spans  trace.TracerProvider
		points metric.MeterProvider
	}{{"neither", noSpans, noPoints}, {"point", noSpans, points}, {"span", spans, noPoints}, {"both", spans, points}} {
		b.Run("pgtrace/"+c.name, func(b *testing.B) {
			t, err := New(c.spans, c.points, "ragd")
			if err != nil {
				b.Fatal(err)
			}
			oneStatement(b, conn.Conn(), c.spans, t)
		})
		b.Run("otelpgx/"+c.name, func(b *testing.B) {
			oneStatement(b, conn.Conn(), c.spans, otelpgx.NewTracer(otelpgx.WithTracerProvider(c.spans), otelpgx.WithMeterProvider(c.points)))
		})
	}
}

func oneStatement(b *testing.B, conn *pgx.Conn, spans trace.TracerProvider, t pgx.QueryTracer) {
	ctx, root := spans.Tracer("test").Start(context.Background(), "root")
	defer root.End()
	b.ReportAllocs()
	for b.Loop() {
		in := t.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: "SELECT c.id, c.text FROM ragd.chunks c JOIN ragd.documents d ON d.id = c.document_id WHERE c.id = ANY ($1)"})
		t.TraceQueryEnd(in, conn, pgx.TraceQueryEndData{})
	}
}
