package answer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ragd/prompt"
	"ragd/prompt/budget"
	"ragd/prompt/chat"
	"ragd/telemetry"
)

// RouteChat is the route of conversations, with and without retrieval.
const RouteChat Route = "POST /v1/chat/completions"

// ChatRequest is a conversation that the model continues as it stands: nothing is
// retrieved. Nil numbers mean the default.
type ChatRequest struct {
	Messages       []Message
	MaxTokens      *int
	Sampling       *Sampling
	ResponseFormat *ResponseFormat
}

// Message is one message of a conversation; Role is system, user, assistant or tool.
type Message struct{ Role, Content string }

// ChatResult is a finished or interrupted conversation.
type ChatResult struct {
	ID, TraceID, Model, Text string
	FinishReason             string // as in Result
	Usage                    Usage
	Timings                  telemetry.Timings
}

// The bounds of a conversation.
const (
	MaxMessages = 1000
	// defaultChatTokens is the longest answer when the request names none: memory
	// for it is reserved, so it is not simply what the window leaves.
	defaultChatTokens = 1024
)

// Validate checks the conversation against its bounds; the error is an *Error.
func (r *ChatRequest) Validate() error {
	if n := len(r.Messages); n < 1 || n > MaxMessages {
		return invalid("messages", fmt.Sprintf("%d messages, 1 to %d are needed", n, MaxMessages))
	}
	for i, m := range r.Messages {
		switch m.Role {
		case "system", "user", "assistant", "tool":
		default:
			return invalid(fmt.Sprintf("messages[%d].role", i), fmt.Sprintf("%q is not system, developer, user, assistant or tool", m.Role))
		}
		if err := ValidateText(fmt.Sprintf("messages[%d].content", i), m.Content); err != nil {
			return err
		}
	}
	if r.MaxTokens != nil && (*r.MaxTokens < 1 || *r.MaxTokens > MaxAnswerTokens) {
		return invalid("max_tokens", fmt.Sprintf("%d is not between 1 and %d", *r.MaxTokens, MaxAnswerTokens))
	}
	if err := orNone(r.Sampling).validate(); err != nil {
		return err
	}
	return r.ResponseFormat.validate()
}

// Chat continues a conversation. received is when the request arrived. sink is
// told of the place in the queue and of text. The result is never nil.
func (s *Service) Chat(ctx context.Context, received time.Time, req ChatRequest, sink Sink) (*ChatResult, error) {
	if err := req.Validate(); err != nil {
		return &ChatResult{TraceID: s.Reject(ctx, RouteChat, received, err)}, err
	}
	ctx, rec := s.Telemetry.Begin(ctx, string(RouteChat), received)
	t := &talking{Service: s, req: req, rec: rec, sink: sink}
	t.res = &ChatResult{ID: NewID("chatcmpl-"), TraceID: rec.TraceID(), Model: s.Generator.Model().Name}
	sink.Begun(rec.TraceID())
	err := s.checkFormat(req.ResponseFormat)
	if err == nil {
		err = guarded(func() error { return t.run(ctx) })
	}
	if err != nil {
		rec.Abandon(err)
		err = AsError(err)
		t.res.FinishReason = finishOf(err, t.res.FinishReason)
	}
	t.res.Text = t.text.String()
	t.res.Timings = rec.Timings(time.Now())
	rec.End(context.WithoutCancel(ctx), t.res.Timings, t.summary(err))
	return t.res, err
}

// talking is one conversation on its way: render → queue → prefill → decode → stream.
type talking struct {
	*Service
	req  ChatRequest
	rec  *telemetry.Request
	sink Sink
	res  *ChatResult
	text strings.Builder
}

func (t *talking) run(ctx context.Context) (err error) {
	ctx, end := t.rec.Chat(ctx, t.res.Model, t.Generator.Model().Server)
	defer func() { end(t.res.Usage.call(t.res.FinishReason), err) }()
	tokens, err := t.render(ctx)
	if err != nil {
		return err
	}
	room := t.Generator.Model().Window - len(tokens)
	if room < 1 {
		return &Error{Code: OverBudget, Field: "messages", Message: fmt.Sprintf("the messages take %d tokens, the window has %d: %d too many",
			len(tokens), len(tokens)+room, 1-room)}
	}
	gen, err := t.Generator.Generate(ctx, Generation{
		Tokens: tokens, Messages: t.messages(), MaxTokens: t.res.Usage.Ledger.AnswerReserved,
		Sampling: t.sampling(orNone(t.req.Sampling)), Stop: orNone(t.req.Sampling).Stop, Format: t.req.ResponseFormat,
	}, t.event)
	t.rec.Generation(ctx, gen.Times, time.Now())
	t.res.Usage.Cost = t.cfg.Prices.Of(Usage{CachedTokens: gen.CachedTokens, OutputTokens: gen.OutputTokens, InputTokens: or(positive(gen.InputTokens), len(tokens))}.used(!gen.Times.Scheduled.IsZero(), gen.Machine))
	t.res.FinishReason = gen.FinishReason
	t.res.Usage.OutputTokens, t.res.Usage.CachedTokens = gen.OutputTokens, gen.CachedTokens
	t.res.Usage.counted(gen.InputTokens)
	if err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	return nil
}

func (t *talking) event(e Event) {
	if e.Queued {
		t.sink.Queued(e.Position)
		return
	}
	t.text.WriteString(e.Text)
	t.sink.Delta(e.Text)
	t.rec.FirstWrite(time.Now())
}

// render writes the prompt and its ledger.
func (t *talking) render(ctx context.Context) (tokens []int32, err error) {
	_, end := t.rec.Begin(ctx, telemetry.StageRender, "")
	defer func() { end(err) }()
	segments, err := t.segments(t.messages())
	var raised *chat.RaisedError
	if errors.As(err, &raised) {
		return nil, &Error{Code: Invalid, Field: "messages", Message: "messages: the model's chat template refuses them: " + raised.Message}
	}
	if err != nil {
		return nil, err
	}
	tokens, parts := t.tokenize(segments)
	ledger := new(budget.Plan).Measured(parts)
	ledger.Dropped, ledger.Window = []budget.Dropped{}, t.Generator.Model().Window
	ledger.AnswerReserved = or(t.req.MaxTokens, max(0, min(ledger.Window-len(tokens), defaultChatTokens)))
	t.res.Usage.InputTokens, t.res.Usage.Ledger = len(tokens), ledger
	return tokens, nil
}

// messages are the conversation as the template takes it: what the last user
// said is the question, everything before it but the system's is history.
func (t *talking) messages() []prompt.Message {
	last := -1
	for i, m := range t.req.Messages {
		if m.Role == "user" {
			last = i
		}
	}
	out := make([]prompt.Message, len(t.req.Messages))
	for i, m := range t.req.Messages {
		part := prompt.Part{Kind: prompt.History}
		switch {
		case m.Role == "system":
			part.Kind = prompt.System
		case m.Role == "tool":
			part.Kind = prompt.Tools
		case i == last:
			part.Kind = prompt.Question
		}
		out[i] = prompt.Message{Role: m.Role, Pieces: []prompt.Piece{{Text: m.Content, Part: part}}}
	}
	return out
}

func (t *talking) summary(err error) telemetry.Summary {
	u := t.res.Usage
	sum := telemetry.Summary{
		ID: t.res.ID, Model: t.res.Model, Outcome: telemetry.Answered, AnswerKind: KindGenerated, FinishReason: t.res.FinishReason,
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedTokens: u.CachedTokens, Cost: u.Cost, Prompt: promptTokens(u.Ledger),
		Question: t.req.Messages[len(t.req.Messages)-1].Content, Answer: t.res.Text,
	}
	return failed(sum, err)
}

// positive is nil for 0.
func positive(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}
