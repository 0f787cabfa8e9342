package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
	"ragd/telemetry"
)

// completionRequest is the body of POST /v1/chat/completions: OpenAI's fields, the
// sampling numbers that vLLM and llama.cpp add to them, and ragd's own.
type completionRequest struct {
	Model               string                 `json:"model"`
	Messages            []completionMessage    `json:"messages"`
	MaxTokens           *int                   `json:"max_tokens"`
	MaxCompletionTokens *int                   `json:"max_completion_tokens"`
	Temperature         *float64               `json:"temperature"`
	TopP                *float64               `json:"top_p"`
	TopK                *int                   `json:"top_k"`
	MinP                *float64               `json:"min_p"`
	RepetitionPenalty   *float64               `json:"repetition_penalty"`
	Seed                *int64                 `json:"seed"`
	Stop                stringOrList           `json:"stop"`
	ResponseFormat      *answer.ResponseFormat `json:"response_format"`
	Stream              bool                   `json:"stream"`
	StreamOptions       *streamOptions         `json:"stream_options"`
	// Ragd narrows the search of a model that answers from documents.
	Ragd *retrievalOptions `json:"ragd"`

	// Only the values that change nothing are taken.
	N                *int            `json:"n"`
	Logprobs         *bool           `json:"logprobs"`
	TopLogprobs      *int            `json:"top_logprobs"`
	PresencePenalty  *float64        `json:"presence_penalty"`
	FrequencyPenalty *float64        `json:"frequency_penalty"`
	LogitBias        map[string]any  `json:"logit_bias"`
	Tools            []any           `json:"tools"`
	ToolChoice       json.RawMessage `json:"tool_choice"`
	Modalities       []string        `json:"modalities"`

	// Taken and not used.
	User              string         `json:"user"`
	Metadata          map[string]any `json:"metadata"`
	Store             *bool          `json:"store"`
	ServiceTier       string         `json:"service_tier"`
	ParallelToolCalls *bool          `json:"parallel_tool_calls"`
	PromptCacheKey    string         `json:"prompt_cache_key"`
	SafetyIdentifier  string         `json:"safety_identifier"`
}

type streamOptions struct {
	IncludeUsage       bool  `json:"include_usage"`
	IncludeObfuscation *bool `json:"include_obfuscation"` // taken and not used
}

// retrievalOptions are the fields of POST /ask that OpenAI has no name for.
type retrievalOptions struct {
	Filters    *answer.Filters `json:"filters"`
	TopK       *int            `json:"top_k"`
	MaxChunks  *int            `json:"max_chunks"`
	Budget     *answer.Budget  `json:"budget"`
	AnswerMode string          `json:"answer_mode"`
	Explain    bool            `json:"explain"`
}

type completionMessage struct {
	Role    string      `json:"role"`
	Content contentText `json:"content"`
	Name    string      `json:"name"`
	// ToolCalls are what the assistant asked for earlier; the model reads them as text.
	ToolCalls  []toolCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
	Refusal    *string    `json:"refusal"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// contentText is a text, a list of parts of the type text, or null.
type contentText string

// UnmarshalJSON joins the parts.
func (t *contentText) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil {
		if one != nil {
			*t = contentText(*one)
		}
		return nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(data, &parts); err != nil {
		return unsupported("messages.content", "a string or a list of parts of the type text is wanted")
	}
	var b strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return unsupported("messages.content.type", fmt.Sprintf("%q is not supported; only text is", p.Type))
		}
		b.WriteString(p.Text)
	}
	*t = contentText(b.String())
	return nil
}

// stringOrList is "a" or ["a", …].
type stringOrList []string

// UnmarshalJSON reads "a" as ["a"].
func (l *stringOrList) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil {
		if one != nil {
			*l = stringOrList{*one}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(l))
}

// completion is the answer in one body.
type completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   *completionUsage   `json:"usage"`
	completionExtra
}

type completionChoice struct {
	Index        int            `json:"index"`
	Message      completionText `json:"message"`
	Logprobs     *struct{}      `json:"logprobs"`
	FinishReason string         `json:"finish_reason"`
}

type completionText struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"`
}

type completionUsage struct {
	PromptTokens     int          `json:"prompt_tokens"`
	CompletionTokens int          `json:"completion_tokens"`
	TotalTokens      int          `json:"total_tokens"`
	PromptDetails    tokenDetails `json:"prompt_tokens_details"`
}

type tokenDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// completionExtra is what OpenAI has no fields for.
type completionExtra struct {
	// Citations are there when documents were searched.
	Citations []answer.Citation `json:"citations,omitempty"`
	Ragd      *completionReport `json:"ragd,omitempty"`
}

// completionReport holds both ledgers, and what was found.
type completionReport struct {
	TraceID         string            `json:"trace_id"`
	FinishReason    string            `json:"finish_reason"`
	Ledger          answer.Ledger     `json:"ledger"`
	Timings         telemetry.Timings `json:"timings"`
	AnswerKind      string            `json:"answer_kind,omitempty"`
	Refused         bool              `json:"refused,omitempty"`
	Sources         *answer.Sources   `json:"sources,omitempty"`
	RetrievedChunks int               `json:"retrieved_chunks,omitempty"`
	UsedChunks      int               `json:"used_chunks,omitempty"`
	Explain         *answer.Explain   `json:"explain,omitempty"`
}

// finished is a conversation's outcome, whichever road it took.
type finished struct {
	id, traceID, model, text, reason string
	usage                            answer.Usage
	timings                          telemetry.Timings
	asked                            *answer.Result // with retrieval
}

func (s *server) chatCompletions(c *gin.Context) {
	received := time.Now()
	var req completionRequest
	err := s.decode(c, &req)
	if err == nil {
		err = s.checkCompletion(&req)
	}
	if err != nil {
		s.fail(c, err, s.Asker.Reject(c.Request.Context(), answer.RouteChat, received, err))
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), s.cfg.RequestTimeout)
	defer cancel()
	if req.Stream {
		s.streamCompletion(ctx, c, received, &req)
		return
	}
	f, err := s.complete(ctx, received, &req, discard{})
	spend(c, f.tokens().TotalTokens)
	if err != nil {
		s.fail(c, err, f.traceID)
		return
	}
	c.Header(traceHeader, f.traceID)
	c.Header("Server-Timing", f.timings.ServerTiming())
	c.JSON(http.StatusOK, completion{
		ID: f.id, Object: "chat.completion", Created: received.Unix(), Model: req.Model,
		Choices:         []completionChoice{{Message: completionText{Role: "assistant", Content: f.text}, FinishReason: f.finishReason()}},
		Usage:           f.tokens(),
		completionExtra: f.extra(),
	})
}

// complete takes the road that the model's name asks for.
func (s *server) complete(ctx context.Context, received time.Time, req *completionRequest, sink answer.Sink) (finished, error) {
	collection, documents := retrieval(req.Model)
	if !documents {
		res, err := s.Asker.Chat(ctx, received, req.chat(), sink)
		return finished{res.ID, res.TraceID, res.Model, res.Text, res.FinishReason, res.Usage, res.Timings, nil}, err
	}
	ask, err := req.ask(collection)
	if err != nil {
		return finished{traceID: s.Asker.Reject(ctx, answer.RouteChat, received, err)}, err
	}
	res, err := s.Asker.Ask(ctx, received, ask, sink)
	return finished{res.ID, res.TraceID, res.Model, res.Answer, res.FinishReason, res.Usage, res.Timings, res}, err
}

// finishReason is in OpenAI's words.
func (f *finished) finishReason() string {
	if f.reason == "length" {
		return "length"
	}
	return "stop"
}

func (f *finished) tokens() *completionUsage {
	u := f.usage
	return &completionUsage{u.InputTokens, u.OutputTokens, u.InputTokens + u.OutputTokens, tokenDetails{u.CachedTokens}}
}

func (f *finished) extra() completionExtra {
	r := &completionReport{TraceID: f.traceID, FinishReason: f.reason, Ledger: f.usage.Ledger, Timings: f.timings}
	if f.asked == nil {
		return completionExtra{Ragd: r}
	}
	a := f.asked
	r.AnswerKind, r.Refused, r.Sources, r.Explain = a.Kind, a.Refused, &a.Sources, a.Explain
	r.RetrievedChunks, r.UsedChunks = a.RetrievedChunks, a.UsedChunks
	return completionExtra{Citations: a.Citations, Ragd: r}
}
