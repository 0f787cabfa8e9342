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
	ID              string
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
	r.root.SetAttributes(
		attribute.String(attrOutcome, string(s.Outcome)),
		attribute.String(attrAnswerKind, s.AnswerKind),
		attribute.Bool(attrRefused, s.Outcome == Refused),
		attribute.String(attrResponseID, s.ID),
		attribute.String(attrResponseModel, s.Model),
		attribute.StringSlice(attrFinishReasons, []string{s.FinishReason}),
		attribute.Int(attrInputTokens, s.InputTokens),
		attribute.Int(attrOutputTokens, s.OutputTokens),
		attribute.Int(attrCachedTokens, s.CachedTokens),
		attribute.Int(attrRetrievedChunks, s.RetrievedChunks),
		attribute.Int(attrUsedChunks, s.UsedChunks),
		attribute.Float64(attrRetrievalMS, ms(t.Stage(StageRetrieval))),
		attribute.Float64(attrRerankMS, ms(t.Stage(StageRerank))),
		attribute.Float64(attrTTFTMS, ms(t.TTFT)),
		attribute.Float64(attrLLMTTFTMS, ms(t.LLMTTFT)),
		attribute.Float64(attrTotalMS, ms(t.Total)),
	)
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

func (r *Request) logRow(ctx context.Context, t Timings, s Summary) {
	row := []slog.Attr{
		slog.String("id", s.ID),
		slog.String("outcome", string(s.Outcome)),
		slog.String("error", s.ErrorCode),
		slog.String("collection", s.Collection),
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
