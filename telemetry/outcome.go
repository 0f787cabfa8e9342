package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"ragd/telemetry/cost"
)

// Outcome says how a request ended. Its values are the only ones a metric label
// takes.
type Outcome string

// The outcomes.
const (
	Answered  Outcome = "answered"
	Refused   Outcome = "refused"
	Failed    Outcome = "error"
	Cancelled Outcome = "cancelled"
	TimedOut  Outcome = "timeout"
	Rejected  Outcome = "rejected" // 4xx: the request itself was wrong
)

// Summary is what a finished request is recorded with.
type Summary struct {
	ID string
	// Operation is what a model did, one of the conventions' gen_ai.operation.name:
	// "chat" when empty.
	Operation       string
	Collection      string
	Model           string
	Outcome         Outcome
	AnswerKind      string
	FinishReason    string
	ErrorCode       string
	InputTokens     int
	OutputTokens    int
	CachedTokens    int
	RetrievedChunks int
	UsedChunks      int
	// Cost is nil where nothing has a price.
	Cost *cost.Cost
	// Prompt is the token ledger of the rendered prompt, Dropped what was left
	// out of it by reason.
	Prompt  PromptTokens
	Dropped []Dropped
	// Question and Answer are recorded only when the operator asked for content.
	Question, Answer string
}

// End closes the root span, feeds the metrics, writes the log row and keeps the
// record for the latency page, all from the same Timings. It must be called once, whatever happened.
func (r *Request) End(ctx context.Context, t Timings, s Summary) {
	if r.t.cfg.Off {
		r.t.active.Add(-1)
		return
	}
	r.endRoot(t, s)
	r.t.metrics.record(ctx, r.route, t, s)
	r.logRow(ctx, t, s)
	r.keep(t, s)
	r.t.active.Add(-1)
}

func (r *Request) endRoot(t Timings, s Summary) {
	r.root.SetAttributes(rootAttributes(t, s)...)
	if c := s.Cost; c != nil {
		r.root.SetAttributes(
			attribute.Float64(attrCostInput, c.Input.Float()), attribute.Float64(attrCostCached, c.CachedInput.Float()),
			attribute.Float64(attrCostOutput, c.Output.Float()), attribute.Float64(attrCostTotal, c.Total.Float()),
			attribute.String(attrCostCurrency, c.Currency),
		)
	}
	if r.t.cfg.RecordContent {
		r.root.SetAttributes(attribute.String(attrQuestion, s.Question), attribute.String(attrAnswer, s.Answer))
	}
	if s.ErrorCode != "" {
		r.root.SetAttributes(attribute.String(attrErrorType, s.ErrorCode))
	}
	if s.Outcome == Failed || s.Outcome == TimedOut {
		r.root.SetStatus(codes.Error, "")
	}
	r.root.End(trace.WithTimestamp(r.received.Add(t.Total)))
}

// rootAttributes say what was; what a request had none of, such as the tokens that a
// search generates, is left out.
func rootAttributes(t Timings, s Summary) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 20)
	attrs = append(attrs, attribute.String(attrOutcome, string(s.Outcome)), attribute.Bool(attrRefused, s.Outcome == Refused), attribute.Float64(attrTotalMS, ms(t.Total)))
	for _, text := range [...]struct{ name, value string }{{attrAnswerKind, s.AnswerKind}, {attrResponseID, s.ID}, {attrResponseModel, s.Model}} {
		if text.value != "" {
			attrs = append(attrs, attribute.String(text.name, text.value))
		}
	}
	if s.FinishReason != "" {
		attrs = append(attrs, attribute.StringSlice(attrFinishReasons, []string{s.FinishReason}))
	}
	if s.InputTokens > 0 {
		attrs = append(attrs, attribute.Int(attrInputTokens, s.InputTokens))
	}
	if t.generated() {
		attrs = append(attrs, attribute.Int(attrOutputTokens, s.OutputTokens), attribute.Int(attrCachedTokens, s.CachedTokens))
	}
	if s.retrieved(t) {
		attrs = append(attrs, attribute.Int(attrRetrievedChunks, s.RetrievedChunks))
	}
	if s.presented(t) {
		attrs = append(attrs, attribute.Int(attrUsedChunks, s.UsedChunks))
	}
	for _, time := range [...]struct {
		name string
		took time.Duration
	}{
		{attrRetrievalMS, t.Stage(StageRetrieval)}, {attrRerankMS, t.Stage(StageRerank)}, {attrTTFTMS, t.TTFT}, {attrLLMTTFTMS, t.LLMTTFT},
	} {
		if time.took > 0 {
			attrs = append(attrs, attribute.Float64(time.name, ms(time.took)))
		}
	}
	return attrs
}

// generated reports whether a token was sampled.
func (t Timings) generated() bool { return t.LLMTTFT > 0 }

// retrieved reports whether the search of a request came to its end: one that failed
// has no number of chunks, not even none.
func (s Summary) retrieved(t Timings) bool {
	return t.Stage(StageRetrieval) > 0 && (s.RetrievedChunks > 0 || s.Outcome == Answered || s.Outcome == Refused)
}

// presented reports whether evidence was chosen for a prompt, which a search does not.
func (s Summary) presented(t Timings) bool { return s.retrieved(t) && t.Stage(StagePack) > 0 }

func (r *Request) logRow(ctx context.Context, t Timings, s Summary) {
	row := []slog.Attr{
		slog.String("id", s.ID),
		slog.String("route", r.route),
		slog.String("outcome", string(s.Outcome)),
		slog.String("error", s.ErrorCode),
		slog.String("collection", s.Collection),
		slog.String("model", s.Model),
		slog.String("answer_kind", s.AnswerKind),
		slog.Float64("retrieval_ms", ms(t.Stage(StageRetrieval))),
		slog.Float64("rerank_ms", ms(t.Stage(StageRerank))),
		slog.Float64("queue_ms", ms(t.Stage(StageQueue))),
		slog.Float64("prefill_ms", ms(t.Stage(StagePrefill))),
		slog.Float64("decode_ms", ms(t.Stage(StageDecode))),
		slog.Float64("ttft_ms", ms(t.TTFT)),
		slog.Float64("total_ms", ms(t.Total)),
		slog.Int("input_tokens", s.InputTokens),
		slog.Int("output_tokens", s.OutputTokens),
		slog.Int("cached_tokens", s.CachedTokens),
		slog.Int("retrieved_chunks", s.RetrievedChunks),
		slog.Int("used_chunks", s.UsedChunks),
		slog.String("trace_id", r.TraceID()),
		slog.String("span_id", r.SpanID()),
	}
	if s.Cost != nil {
		row = append(row, slog.Any("cost", s.Cost))
	}
	r.t.log.LogAttrs(ctx, slog.LevelInfo, "query", row...)
}

// errorType is a label for an error with few values: the conventions ask for
// low cardinality.
func errorType(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "error"
}

// Age is how long ago the request was received.
func (r *Request) Age() time.Duration { return time.Since(r.received) }
