package pgtrace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// statement is what all calls of one text have in common.
type statement struct {
	name      string // of the span: the conventions' db.query.summary
	operation string
	start     []trace.SpanStartOption
	measured  metric.MeasurementOption
}

// labels are those of the metric; few, for they are the operations of SQL.
func (s *statement) labels() []attribute.KeyValue {
	return []attribute.KeyValue{semconv.DBSystemNamePostgreSQL, semconv.DBOperationName(s.operation)}
}

// mostStatements bounds what is kept. ragd's texts are a few dozen and some that
// filters vary; beyond the bound one is made anew each time.
const mostStatements = 512

type statements struct {
	database string
	kept     sync.Map // text → *statement
	count    atomic.Int64
}

// of is the statement of a text.
func (l *statements) of(text string) *statement {
	return l.keep(text, func() *statement { return l.make(summary(text), semconv.DBQueryText(strings.TrimSpace(text))) })
}

// named is an operation that has no text.
func (l *statements) named(operation string) *statement {
	return l.keep(operation, func() *statement { return l.make(operation) })
}

// batch is several texts as one statement.
func (l *statements) batch(texts []string) *statement {
	all := strings.Join(texts, "; ")
	return l.keep("BATCH "+all, func() *statement {
		return l.make("BATCH "+summary(all), semconv.DBQueryText(strings.TrimSpace(all)), semconv.DBOperationBatchSize(len(texts)))
	})
}

func (l *statements) keep(key string, create func() *statement) *statement {
	if s, ok := l.kept.Load(key); ok {
		return s.(*statement)
	}
	s := create()
	if l.count.Load() < mostStatements {
		l.count.Add(1)
		l.kept.Store(key, s)
	}
	return s
}

func (l *statements) make(name string, more ...attribute.KeyValue) *statement {
	operation, _, _ := strings.Cut(name, " ")
	s := &statement{name: name, operation: operation}
	attrs := append(s.labels(), semconv.DBNamespace(l.database), semconv.DBQuerySummary(name))
	s.start = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(append(attrs, more...)...)}
	s.measured = metric.WithAttributeSet(attribute.NewSet(s.labels()...))
	return s
}

// maxTables bounds the tables that a summary names.
const maxTables = 3

// summary is the operation of a text and the tables of ragd in it, in their order:
// "SELECT ragd.vectors ragd.documents".
func summary(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r != '.' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if len(words) == 0 {
		return "UNKNOWN"
	}
	out := []string{strings.ToUpper(words[0])}
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "ragd.") && !slices.Contains(out, w) && len(out) <= maxTables {
			out = append(out, w)
		}
	}
	return strings.Join(out, " ")
}

// readsOnly reports whether a text is the beginning or the end of a transaction that
// only reads. Which transaction a connection is in is noted on it.
func (l *statements) readsOnly(conn *pgx.Conn, text string) bool {
	const noted = "ragd/pgtrace: reads only"
	switch {
	case strings.HasPrefix(text, "begin"):
		only := strings.HasSuffix(text, "read only")
		conn.PgConn().CustomData()[noted] = only
		return only
	case text == "commit" || text == "rollback":
		only, _ := conn.PgConn().CustomData()[noted].(bool)
		return only
	}
	return false
}

// failure is the SQLSTATE of an error as attributes, or a word for what is none of
// PostgreSQL's: an error's text may quote a row.
func failure(err error) []attribute.KeyValue {
	var of *pgconn.PgError
	switch {
	case errors.As(err, &of):
		return []attribute.KeyValue{semconv.DBResponseStatusCode(of.Code), semconv.ErrorTypeKey.String(of.Code)}
	case errors.Is(err, context.Canceled):
		return []attribute.KeyValue{semconv.ErrorTypeKey.String("cancelled")}
	case errors.Is(err, context.DeadlineExceeded):
		return []attribute.KeyValue{semconv.ErrorTypeKey.String("timeout")}
	}
	return []attribute.KeyValue{semconv.ErrorTypeOther}
}
