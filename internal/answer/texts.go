package answer

import (
	"context"
	"fmt"
	"sort"
	"time"

	"ragd/telemetry"
)

// Routes of callers that use the encoders for themselves.
const (
	RouteEmbeddings Route = "POST /v1/embeddings"
	RouteRerank     Route = "POST /v1/rerank"
)

// TextEncoder turns texts of callers into vectors.
type TextEncoder interface {
	Model() string
	Dim() int
	// CountText is how many tokens a text takes, prefix and special tokens included.
	CountText(text string) int
	// EncodeTexts encodes texts as search queries or as passages, in their order.
	// What is wrong with one of them is a *TextFault.
	EncodeTexts(ctx context.Context, texts []string, query bool) ([]EncodedText, error)
}

// EncodedText is a text's unit vector and the tokens that were read for it.
type EncodedText struct {
	Vector []float32
	Tokens int
}

// TextScorer rates texts of callers against a query: the scorer that questions are
// reranked with.
type TextScorer interface {
	Model() string
	ScoreTexts(ctx context.Context, query string, texts []string) ([]TextScore, error)
}

// TextScore is one text's score, the tokens that were read for it, and how many at
// its end were not.
type TextScore struct {
	Score       float32
	Tokens, Cut int
}

// TextFault says what is wrong with one text of a list.
type TextFault struct {
	Index  int
	Reason string
}

func (e *TextFault) Error() string { return fmt.Sprintf("text %d: %s", e.Index, e.Reason) }

// The bounds of lists of texts.
const (
	MaxTexts      = 2048
	MaxTextTokens = 1 << 18 // of all texts together
)

// EmbedRequest asks for vectors.
type EmbedRequest struct {
	Texts []string
	// Query: the texts are search queries, else passages. Models such as e5 were
	// trained with a prefix of its own for either.
	Query bool
}

// EmbedResult has one vector a text.
type EmbedResult struct {
	ID, TraceID, Model string
	Vectors            [][]float32
	Tokens             int
	Timings            telemetry.Timings
}

// Embed encodes texts. The result is never nil.
func (s *Service) Embed(ctx context.Context, received time.Time, req EmbedRequest) (*EmbedResult, error) {
	res := &EmbedResult{ID: NewID("emb_"), Model: s.Texts.Encoder.Model()}
	w := &work{Service: s, route: RouteEmbeddings, operation: telemetry.OperationEmbeddings, received: received, id: res.ID, model: res.Model, tokens: &res.Tokens, field: "input"}
	err := w.do(ctx, req.Texts, func(ctx context.Context, rec *telemetry.Request) (err error) {
		ctx, end := rec.Begin(ctx, telemetry.StageEmbed, res.Model)
		defer func() { end(err) }()
		list, err := s.Texts.Encoder.EncodeTexts(ctx, req.Texts, req.Query)
		for _, v := range list {
			res.Vectors = append(res.Vectors, v.Vector)
			res.Tokens += v.Tokens
		}
		return err
	})
	res.TraceID, res.Timings = w.traceID, w.timings
	return res, err
}

// RerankRequest asks for texts in the order in which they answer a query.
type RerankRequest struct {
	Query string
	Texts []string
	// TopN is how many are wanted; nil for all.
	TopN *int
}

// RerankResult lists the texts, best first.
type RerankResult struct {
	ID, TraceID, Model string
	Results            []RankedText
	Tokens             int
	Timings            telemetry.Timings
}

// RankedText is the text at Index of the request.
type RankedText struct {
	Index int
	Score float32
	Cut   int // tokens at its end that were not read
}

// Rerank orders texts by the scorer in use. The result is never nil.
func (s *Service) Rerank(ctx context.Context, received time.Time, req RerankRequest) (*RerankResult, error) {
	res := &RerankResult{ID: NewID("rerank_"), Results: []RankedText{}}
	w := &work{Service: s, route: RouteRerank, operation: telemetry.OperationRerank, received: received, id: res.ID, tokens: &res.Tokens, field: "documents"}
	if s.Texts.Scorer != nil {
		res.Model = s.Texts.Scorer.Model()
		w.model = res.Model
	}
	err := req.validate(s.Texts.Scorer)
	if err != nil {
		res.TraceID = s.Reject(ctx, RouteRerank, received, err)
		return res, err
	}
	err = w.do(ctx, req.Texts, func(ctx context.Context, rec *telemetry.Request) (err error) {
		ctx, end := rec.Begin(ctx, telemetry.StageRerank, res.Model)
		defer func() { end(err) }()
		scores, err := s.Texts.Scorer.ScoreTexts(ctx, req.Query, req.Texts)
		for i, t := range scores {
			res.Results = append(res.Results, RankedText{i, t.Score, t.Cut})
			res.Tokens += t.Tokens
		}
		return err
	})
	sort.SliceStable(res.Results, func(i, j int) bool { return res.Results[i].Score > res.Results[j].Score })
	res.Results = res.Results[:min(or(req.TopN, len(res.Results)), len(res.Results))]
	res.TraceID, res.Timings = w.traceID, w.timings
	return res, err
}

func (r *RerankRequest) validate(scorer TextScorer) error {
	switch {
	case scorer == nil:
		return &Error{Code: Conflict, Message: "there is no reranker: rerank.scorer is none"}
	case blank(r.Query):
		return invalid("query", "is empty")
	case len(r.Query) > MaxQuestionBytes:
		return &Error{Code: TooLarge, Field: "query", Message: fmt.Sprintf("query: %d bytes, at most %d are allowed", len(r.Query), MaxQuestionBytes)}
	case r.TopN != nil && *r.TopN < 1:
		return invalid("top_n", fmt.Sprintf("%d is less than 1", *r.TopN))
	}
	return ValidateText("query", r.Query)
}

// work is one request over a list of texts.
type work struct {
	*Service
	route     Route
	operation string // gen_ai.operation.name
	received  time.Time
	id, model string
	field     string // name of the list
	tokens    *int

	traceID string
	timings telemetry.Timings
}

// do checks the texts, takes a place among those at work, and measures run.
func (w *work) do(ctx context.Context, texts []string, run func(context.Context, *telemetry.Request) error) error {
	ctx, rec := w.Telemetry.Begin(ctx, string(w.route), w.received)
	w.traceID = rec.TraceID()
	err := w.check(texts)
	if err == nil {
		err = w.enter(func() error { return guarded(func() error { return run(ctx, rec) }) })
	}
	if err != nil {
		rec.Abandon(err)
		err = AsError(w.named(err))
	}
	w.timings = rec.Timings(time.Now())
	sum := telemetry.Summary{ID: w.id, Operation: w.operation, Model: w.model, Outcome: telemetry.Answered, InputTokens: *w.tokens}
	rec.End(context.WithoutCancel(ctx), w.timings, failed(sum, err))
	return err
}

// check holds the list to its bounds.
func (w *work) check(texts []string) error {
	if n := len(texts); n < 1 || n > MaxTexts {
		return invalid(w.field, fmt.Sprintf("%d texts, 1 to %d are needed", n, MaxTexts))
	}
	tokens := 0
	for i, t := range texts {
		field := fmt.Sprintf("%s[%d]", w.field, i)
		if blank(t) {
			return invalid(field, "is empty")
		}
		if err := ValidateText(field, t); err != nil {
			return err
		}
		if tokens += w.Texts.Encoder.CountText(t); tokens > MaxTextTokens {
			return &Error{Code: TooLarge, Field: w.field, Message: fmt.Sprintf("%s: the first %d texts have %d tokens, at most %d are allowed", w.field, i+1, tokens, MaxTextTokens)}
		}
	}
	return nil
}

// enter refuses work when too many requests are at it.
func (w *work) enter(run func() error) error {
	select {
	case w.atWork <- struct{}{}:
		defer func() { <-w.atWork }()
		return run()
	default:
		return &Error{Code: Busy, Message: fmt.Sprintf("%d requests for the encoders wait, more are not taken", cap(w.atWork)), RetryAfter: time.Second}
	}
}

// named says which text of the request is wrong.
func (w *work) named(err error) error {
	if fault, ok := err.(*TextFault); ok {
		return invalid(fmt.Sprintf("%s[%d]", w.field, fault.Index), fault.Reason)
	}
	return err
}
