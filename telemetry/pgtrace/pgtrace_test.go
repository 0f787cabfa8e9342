package pgtrace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"ragd/internal/testenv"
)

// nth makes names that differ.
type nth struct{}

// rig is a traced connection to a fresh database.
type rig struct {
	*pgxpool.Pool
	spans   *tracetest.InMemoryExporter
	tracers trace.TracerProvider
	reader  *sdkmetric.ManualReader
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	r.tracers = sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans))
	cfg := testenv.Database(t).Config().Copy()
	cfg.MaxConns = 1
	tracer, err := New(r.tracers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader)), cfg.ConnConfig.Database)
	if err != nil {
		t.Fatal(err)
	}
	cfg.ConnConfig.Tracer = tracer
	if r.Pool, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	if err := r.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// within runs work inside a span and returns the names of the spans below it, but those of
// preparing.
func (r *rig) within(t *testing.T, work func(context.Context)) (names []string, spans tracetest.SpanStubs) {
	t.Helper()
	r.spans.Reset()
	ctx, root := r.tracers.Tracer("test").Start(t.Context(), "root")
	work(ctx)
	root.End()
	for _, s := range r.spans.GetSpans() {
		if s.Name == "root" || s.Name == "PREPARE" {
			continue
		}
		if s.SpanKind != trace.SpanKindClient || s.Parent.TraceID() != root.SpanContext().TraceID() {
			t.Errorf("%s is %v below %v", s.Name, s.SpanKind, s.Parent.SpanID())
		}
		names, spans = append(names, s.Name), append(spans, s)
	}
	return names, spans
}

func attributes(s tracetest.SpanStub) map[string]string {
	out := map[string]string{}
	for _, a := range s.Attributes {
		out[string(a.Key)] = a.Value.String()
	}
	return out
}

// counts are how often each operation was measured, with its error after it.
func (r *rig) counts(t *testing.T) map[string]uint64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]uint64{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if m.Name != "db.client.operation.duration" || m.Unit != "s" {
				t.Errorf("%s in %s", m.Name, m.Unit)
			}
			for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
				operation, _ := p.Attributes.Value("db.operation.name")
				failed, _ := p.Attributes.Value(attribute.Key("error.type"))
				out[strings.TrimSpace(operation.AsString()+" "+failed.AsString())] += p.Count
			}
		}
	}
	return out
}

// TestSpans: one a statement, named by what it does to which tables; a transaction
// that writes has its bounds too, one that reads has not; none outside of a request.
func TestSpans(t *testing.T) {
	r := newRig(t)
	const insert, read = "INSERT INTO ragd.collections (tenant, name) VALUES ($1, $2)", "SELECT c.id FROM ragd.collections c JOIN ragd.documents d ON d.collection_id = c.id WHERE name = $1"
	write := func(ctx context.Context) {
		err := pgx.BeginFunc(ctx, r, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, insert, "t", fmt.Sprint(ctx.Value(nth{})))
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	names, _ := r.within(t, write)
	if want := []string{"BEGIN", "INSERT ragd.collections", "COMMIT"}; !slices.Equal(names, want) {
		t.Errorf("a write has the spans %v, want %v", names, want)
	}
	names, spans := r.within(t, func(ctx context.Context) {
		err := pgx.BeginTxFunc(ctx, r, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, read, "secret"); err != nil {
				return err
			}
			b := &pgx.Batch{}
			b.Queue("SELECT 1 FROM ragd.vectors")
			b.Queue("SELECT name FROM ragd.collections")
			return tx.SendBatch(ctx, b).Close()
		})
		if err != nil {
			t.Error(err)
		}
	})
	if want := []string{"SELECT ragd.collections ragd.documents", "BATCH SELECT ragd.vectors ragd.collections"}; !slices.Equal(names, want) {
		t.Fatalf("a read has the spans %v, want %v", names, want)
	}
	for key, want := range map[string]string{
		"db.system.name": "postgresql", "db.query.text": read, "db.operation.name": "SELECT", "db.query.summary": names[0],
		"db.namespace": r.Config().ConnConfig.Database,
	} {
		if got := attributes(spans[0])[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if strings.Contains(fmt.Sprint(spans), "secret") {
		t.Error("a parameter was recorded")
	}
	if attributes(spans[1])["db.operation.batch.size"] != "2" {
		t.Errorf("the batch has %v", attributes(spans[1]))
	}
	// What follows a read is a write again.
	if names, _ = r.within(t, func(ctx context.Context) { write(context.WithValue(ctx, nth{}, 2)) }); len(names) != 3 {
		t.Errorf("a write after a read has %v", names)
	}
	r.spans.Reset()
	write(context.WithValue(t.Context(), nth{}, 3))
	if got := r.spans.GetSpans(); len(got) != 0 {
		t.Errorf("outside of a request there are %d spans", len(got))
	}
	got := r.counts(t)
	for operation, want := range map[string]uint64{"INSERT": 3, "SELECT": 1, "BATCH": 1, "BEGIN": 3, "COMMIT": 3} {
		if got[operation] != want {
			t.Errorf("%s was measured %d times, want %d: %v", operation, got[operation], want, got)
		}
	}
	if got["PREPARE"] == 0 || got["CONNECT"] == 0 {
		t.Errorf("measured are %v", got)
	}
}

// TestFailures have their SQLSTATE and nothing of the row.
func TestFailures(t *testing.T) {
	r := newRig(t)
	names, spans := r.within(t, func(ctx context.Context) {
		for range 2 {
			_, _ = r.Exec(ctx, "INSERT INTO ragd.collections (tenant, name) VALUES ('t', 'secret')")
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_, _ = r.Exec(gone, "SELECT 1")
	})
	if len(names) < 2 {
		t.Fatal(names)
	}
	failed := spans[1]
	if a := attributes(failed); a["db.response.status_code"] != "23505" || a["error.type"] != "23505" || failed.Status.Code.String() != "Error" {
		t.Errorf("a duplicate has %v %v", failed.Status, a)
	}
	if len(failed.Events) != 0 || failed.Status.Description != "" {
		t.Errorf("the error's text was recorded: %v %v", failed.Status, failed.Events)
	}
	if got := r.counts(t); got["INSERT 23505"] != 1 || got["INSERT"] != 1 {
		t.Errorf("measured are %v", got)
	}
}

func TestSummary(t *testing.T) {
	for text, want := range map[string]string{
		"\n\tselect v.id FROM ragd.vectors v, ragd.chunks c WHERE EXISTS (SELECT FROM ragd.vectors)": "SELECT ragd.vectors ragd.chunks",
		"COPY ragd.a": "COPY ragd.a", "begin": "BEGIN", "": "UNKNOWN", "-- ping": "PING",
		"SELECT 'a' FROM ragd.a, ragd.b, ragd.c, ragd.d": "SELECT ragd.a ragd.b ragd.c",
	} {
		if got := summary(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestKeptIsBounded: texts beyond the bound are measured and not kept.
func TestKeptIsBounded(t *testing.T) {
	var l statements
	for i := range 2 * mostStatements {
		if got := l.of(fmt.Sprintf("SELECT %d", i)).name; got != "SELECT" {
			t.Fatal(got)
		}
	}
	kept := 0
	l.kept.Range(func(any, any) bool { kept++; return true })
	if kept != mostStatements {
		t.Errorf("%d statements are kept", kept)
	}
}
