package telemetry

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// stageSpan is what all spans of a stage of one subject have in common.
type stageSpan struct {
	name        string
	kind, attrs trace.SpanStartOption
}

// mostStageSpans bounds what is kept. Subjects are models and collections; a caller can
// name as many of the latter as it likes.
const mostStageSpans = 256

// stageSpans keeps them: every request has the same half a dozen.
type stageSpans struct {
	kept  sync.Map // stageSubject → *stageSpan
	count atomic.Int64
}

type stageSubject struct {
	stage   Stage
	subject string
}

func (l *stageSpans) of(s Stage, subject string) *stageSpan {
	key := stageSubject{s, subject}
	if kept, ok := l.kept.Load(key); ok {
		return kept.(*stageSpan)
	}
	made := &stageSpan{spanName(s, subject), trace.WithSpanKind(spanKind(s)), trace.WithAttributes(stageAttributes(s, subject)...)}
	if l.count.Load() < mostStageSpans {
		l.count.Add(1)
		l.kept.Store(key, made)
	}
	return made
}

func spanName(s Stage, subject string) string {
	name := s.String()
	if s == StageEmbed {
		name = "embeddings"
	}
	if subject == "" {
		return name
	}
	return name + " " + subject
}

func spanKind(s Stage) trace.SpanKind {
	if s == StageDense || s == StageLexical {
		return trace.SpanKindClient
	}
	return trace.SpanKindInternal
}

func stageAttributes(s Stage, subject string) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String(attrStage, s.String())}
	switch s {
	case StageEmbed:
		attrs = append(attrs, attribute.String(attrOperation, OperationEmbeddings), attribute.String(attrRequestModel, subject))
	case StageRetrieval:
		attrs = append(attrs, attribute.String(attrOperation, "retrieval"), attribute.String(attrDataSource, subject))
	}
	return attrs
}
