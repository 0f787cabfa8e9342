// Package answer is the question road: embed → retrieve → rerank → budget →
// render → queue → prefill → decode → stream.
package answer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"ragd/ingest"
	"ragd/prompt"
	"ragd/prompt/chat"
	"ragd/rerank"
	"ragd/retrieve"
	"ragd/telemetry"
	"ragd/telemetry/cost"
)

// Tokenizer is the serving model's.
type Tokenizer interface {
	prompt.Tokenizer
	// Chat puts the beginning-of-sequence token in front of a rendered chat when
	// the model wants one and the template wrote none.
	Chat(ids []int32) []int32
}

// Deps are the stages of the road.
type Deps struct {
	Embedder  retrieve.Embedder
	Retriever retrieve.Retriever
	Reranker  *rerank.Reranker
	Template  *chat.Template
	Tokenizer Tokenizer
	Generator Generator
	Telemetry *telemetry.Telemetry
	// Neighbours lets chunks be joined with those beside them; nil for never.
	Neighbours Neighbours
	// Texts are for callers that use the encoders for themselves.
	Texts Texts
}

// Texts are the encoders as callers use them; Scorer is nil where nothing reranks.
type Texts struct {
	Encoder TextEncoder
	Scorer  TextScorer
	// Most is how many requests may be at work or wait at once; 0 for 64.
	Most int
}

// Config holds the defaults a request may override.
type Config struct {
	// System is the operator's system message; empty for the built-in one.
	System        string
	TopK          int
	MaxChunks     int
	ContextTokens int
	AnswerTokens  int
	// BOS and EOS are the spellings the chat template may write.
	BOS, EOS string
	// Prices are for the tokens or the time of the engine; the zero value has none.
	Prices cost.Prices
	// Rewrite is how a follow-up question becomes one that can be searched for: one
	// of the Rewrite values, RewriteAuto when empty.
	Rewrite string
	// MinConfidence is the mean log probability under which a generated answer
	// is followed by the sentences that support it.
	MinConfidence float64
}

// Service answers questions. It is safe for concurrent use.
type Service struct {
	Deps
	cfg    Config
	margin *margin
	// atWork holds a value for each request that uses the encoders for itself.
	atWork chan struct{}
}

const defaultTexts = 64

// New checks that every stage is there.
func New(deps Deps, cfg Config) (*Service, error) {
	if deps.Embedder == nil || deps.Retriever == nil || deps.Reranker == nil || deps.Template == nil ||
		deps.Tokenizer == nil || deps.Generator == nil || deps.Telemetry == nil {
		return nil, errors.New("answer: a stage of the road is missing")
	}
	return &Service{Deps: deps, cfg: cfg, margin: newMargin(), atWork: make(chan struct{}, cmp.Or(deps.Texts.Most, defaultTexts))}, nil
}

// Ask answers one question. received is when the request arrived. The result is
// never nil: with an error it still holds the ids and what was measured.
func (s *Service) Ask(ctx context.Context, received time.Time, req Request, sink Sink) (*Result, error) {
	if err := req.Validate(); err != nil {
		return &Result{TraceID: s.Reject(ctx, req.route(), received, err)}, err
	}
	req.Question = ingest.ComposeHangul(req.Question)
	ctx, rec := s.Telemetry.Begin(ctx, string(req.route()), received)
	a := &asking{Service: s, req: req, rec: rec, received: received, sink: sink, res: newResult(rec.TraceID(), s.Generator.Model().Name)}
	sink.Begun(rec.TraceID())
	err := s.checkFormat(req.ResponseFormat)
	if err == nil {
		err = guarded(func() error { return a.run(ctx) })
	}
	if err != nil {
		rec.Abandon(err)
		err = AsError(err)
		a.res.FinishReason = finishOf(err, a.res.FinishReason)
	}
	a.res.Usage.Cost = s.cfg.Prices.Of(a.res.Usage.used(a.submitted, a.machine))
	a.res.Timings = rec.Timings(time.Now())
	rec.End(context.WithoutCancel(ctx), a.res.Timings, a.summary(err))
	return a.res, err
}

// Route is what a request came in by: the name of its root span, and a label.
type Route string

// The routes that have a span of their own, with the times of the ledger.
const (
	RouteAsk    Route = "POST /ask"
	RouteSearch Route = "POST /v1/search"
)

// guarded turns a panic into an error, so that the request it ended has an end in
// its figures too.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return f()
}

// Reject records a request that was refused before it was asked.
func (s *Service) Reject(ctx context.Context, route Route, received time.Time, err error) string {
	ctx, rec := s.Telemetry.Begin(ctx, string(route), received)
	rec.End(ctx, rec.Timings(time.Now()), telemetry.Summary{ID: NewID("ask_"), Outcome: telemetry.Rejected, ErrorCode: string(AsError(err).Code)})
	return rec.TraceID()
}

// newResult has empty lists rather than null ones.
func newResult(traceID, model string) *Result {
	return &Result{
		ID: NewID("ask_"), TraceID: traceID, Model: model, Kind: KindGenerated,
		Citations: []Citation{},
		Sources:   Sources{Retrieved: []Source{}, Presented: []Source{}, Cited: []Source{}},
	}
}

// NewID makes an id that no other request has.
func NewID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// finishOf is the finish reason of a request that ended in an error.
func finishOf(err error, sofar string) string {
	if AsError(err).Code == Cancelled {
		return "cancelled"
	}
	return sofar
}

func (a *asking) summary(err error) telemetry.Summary {
	sum := telemetry.Summary{
		ID: a.res.ID, Collection: a.req.label(), Model: a.res.Model, Outcome: telemetry.Answered,
		AnswerKind: a.res.Kind, FinishReason: a.res.FinishReason,
		InputTokens: a.res.Usage.InputTokens, OutputTokens: a.res.Usage.OutputTokens, CachedTokens: a.res.Usage.CachedTokens,
		RetrievedChunks: a.res.RetrievedChunks, UsedChunks: a.res.UsedChunks, Cost: a.res.Usage.Cost,
		Prompt: promptTokens(a.res.Usage.Ledger), Dropped: droppedBy(a.res.Usage.Ledger),
		Question: a.req.Question, Answer: a.res.Answer,
	}
	if a.res.Refused {
		sum.Outcome = telemetry.Refused
	}
	return failed(sum, err)
}

// failed notes in a summary how a request failed, if it did.
func failed(sum telemetry.Summary, err error) telemetry.Summary {
	if err != nil {
		code := AsError(err).Code
		sum.ErrorCode, sum.Outcome = string(code), outcomes[code]
	}
	return sum
}

// outcomes maps error codes to the few values a metric label takes.
var outcomes = map[Code]telemetry.Outcome{
	Invalid: telemetry.Rejected, NotFound: telemetry.Rejected, Conflict: telemetry.Rejected, TooLarge: telemetry.Rejected, OverBudget: telemetry.Rejected,
	Busy: telemetry.Rejected, Cancelled: telemetry.Cancelled, Timeout: telemetry.TimedOut,
	Unavailable: telemetry.Failed, Internal: telemetry.Failed,
}

// SearchRequest is retrieval without generation.
type SearchRequest struct {
	Query       string   `json:"query"`
	Collection  string   `json:"collection"`
	Collections []string `json:"collections,omitempty"`
	TopK        *int     `json:"top_k"`
	Filters     *Filters `json:"filters"`
}

// SearchResult lists candidates as the answer road would see them.
type SearchResult struct {
	TraceID string        `json:"trace_id"`
	Results []Candidate   `json:"results"`
	Rerank  rerank.Report `json:"rerank"`
	// UnreadTokens are as in Usage.
	UnreadTokens int               `json:"unread_tokens,omitempty"`
	Timings      telemetry.Timings `json:"timings"`
}

// Search retrieves and reranks. The result is never nil: with an error it still
// holds the trace id and what was measured.
func (s *Service) Search(ctx context.Context, req SearchRequest) (*SearchResult, error) {
	received := time.Now()
	ask := Request{Question: req.Query, Collection: req.Collection, Collections: req.Collections, TopK: req.TopK, Filters: req.Filters}
	if err := ask.Validate(); err != nil {
		e := AsError(err)
		if e.Field == "question" {
			e = &Error{Code: e.Code, Field: "query", Message: strings.Replace(e.Message, "question", "query", 1)}
		}
		return &SearchResult{TraceID: s.Reject(ctx, RouteSearch, received, e)}, e
	}
	ask.Question = ingest.ComposeHangul(ask.Question)
	ctx, rec := s.Telemetry.Begin(ctx, string(RouteSearch), received)
	a := &asking{Service: s, req: ask, rec: rec, res: newResult(rec.TraceID(), "")}
	err := guarded(func() error { return a.findEvidence(ctx) })
	if err != nil {
		rec.Abandon(err)
	}
	t := rec.Timings(time.Now())
	sum := a.summary(err)
	sum.AnswerKind = "" // a search answers nothing
	rec.End(context.WithoutCancel(ctx), t, sum)
	if err != nil {
		return &SearchResult{TraceID: rec.TraceID(), Timings: t}, AsError(fmt.Errorf("search: %w", err))
	}
	return &SearchResult{TraceID: rec.TraceID(), Results: a.candidates(), Rerank: a.reranked, UnreadTokens: a.res.Usage.UnreadTokens, Timings: t}, nil
}
