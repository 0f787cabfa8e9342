package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"

	"ragd/inference/engine"
	"ragd/inference/gguf"
	"ragd/inference/remote"
	"ragd/inference/sample"
	"ragd/inference/tokenizer"
	"ragd/internal/answer"
	"ragd/prompt"
	"ragd/prompt/chat"
	"ragd/telemetry"
)

// plainTemplate stands for the server's own where that is not known: the tokens it
// makes are an estimate.
const plainTemplate = `{% for m in messages %}{{ m['role'] }}
{{ m['content'] }}
{% endfor %}`

// openRemote answers with a model on another server. With its tokenizer the prompt
// goes there as tokens, which are counted before; without, as messages, and the
// server counts.
func (a *App) openRemote(ctx context.Context) (*answerModel, error) {
	r := a.cfg.Inference.Remote
	key, err := r.Key()
	if err != nil {
		return nil, err
	}
	m := &answerModel{counter: estimate{a.embed}}
	var tok tokenizer.Tokenizer
	if r.Tokenizer == "" {
		m.template, err = chat.Parse(plainTemplate)
	} else {
		m, tok, err = a.remoteTokenizer(ctx, r.Tokenizer)
	}
	if err != nil {
		return nil, fmt.Errorf("inference.remote: %w", err)
	}
	c, err := remote.New(r.URL, r.Model, tok, remote.Config{
		Key: key, Window: r.Window, MaxRequests: a.cfg.Inference.MaxRunning, Stall: r.Stall, HTTP: &http.Client{Transport: tracing{http.DefaultTransport}},
	})
	if err != nil {
		return nil, err
	}
	a.onClose(c.Close)
	host, port := c.Server()
	m.generator = &remoteGenerator{client: c, info: answer.ModelInfo{Name: r.Model, Window: r.Window, Server: telemetry.Server{Address: host, Port: port}}, tokens: tok != nil}
	a.log.Info("answers come from another server", "url", r.URL, "model", r.Model, "counted", map[bool]string{true: "here", false: "there"}[tok != nil])
	return m, nil
}

// remoteTokenizer reads tokenizer and chat template of a GGUF file.
func (a *App) remoteTokenizer(ctx context.Context, name string) (*answerModel, tokenizer.Tokenizer, error) {
	path, err := a.ensure(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return chatModel(f, path)
}

// estimate counts with the embedding model's tokenizer, which knows all languages:
// only the number of ids means something.
type estimate struct{ embed *embedder }

// Encode appends as many ids as the text has tokens.
func (e estimate) Encode(dst []int32, text string) []int32 {
	if strings.TrimSpace(text) == "" {
		return dst
	}
	frame := e.embed.CountPassage("a") - 1 // prefix and special tokens
	return append(dst, make([]int32, max(1, e.embed.CountPassage(text)-frame))...)
}

// EncodeScaffold is Encode.
func (e estimate) EncodeScaffold(dst []int32, text string) []int32 { return e.Encode(dst, text) }

// Chat adds nothing.
func (estimate) Chat(ids []int32) []int32 { return ids }

// tracing passes the trace on (W3C Trace Context).
type tracing struct{ next http.RoundTripper }

// RoundTrip adds the headers to a copy of the request.
func (t tracing) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	telemetry.Propagator().Inject(req.Context(), propagation.HeaderCarrier(req.Header))
	return t.next.RoundTrip(req)
}

// remoteGenerator is another server as the question road sees it.
type remoteGenerator struct {
	client *remote.Client
	info   answer.ModelInfo
	tokens bool // the prompt goes there as tokens
}

var _ answer.Generator = (*remoteGenerator)(nil)

// Model implements answer.Generator.
func (g *remoteGenerator) Model() answer.ModelInfo { return g.info }

// Pace implements answer.Generator: nothing is known of the server's queue.
func (g *remoteGenerator) Pace() answer.Pace { return answer.Pace{} }

// CheckFormat implements answer.Generator. A server that is given messages is asked
// for the form; one that is given tokens has no such field in common with others.
func (g *remoteGenerator) CheckFormat(answer.ResponseFormat) error {
	if g.tokens {
		return &answer.Error{Code: answer.Invalid, Field: "response_format", Message: "response_format: the remote server is given tokens, which goes with text only; leave inference.remote.tokenizer out"}
	}
	return nil
}

// Generate implements answer.Generator.
func (g *remoteGenerator) Generate(ctx context.Context, req answer.Generation, emit func(answer.Event)) (answer.Generated, error) {
	p := req.Sampling
	r := engine.Request{
		Tokens: req.Tokens, MaxTokens: req.MaxTokens, Stop: req.Stop,
		Sampling: sample.Params{
			Temperature: float32(p.Temperature), TopP: float32(p.TopP), MinP: float32(p.MinP),
			RepetitionPenalty: float32(p.RepetitionPenalty), TopK: p.TopK, Seed: p.Seed,
		},
	}
	stream, err := g.submit(ctx, r, req)
	if err != nil {
		return answer.Generated{}, submitError(err)
	}
	return follow(ctx, stream, emit)
}

func (g *remoteGenerator) submit(ctx context.Context, r engine.Request, req answer.Generation) (*engine.Stream, error) {
	if g.tokens {
		return g.client.Submit(ctx, r)
	}
	var format json.RawMessage
	if req.Format != nil {
		data, err := json.Marshal(req.Format)
		if err != nil {
			return nil, err
		}
		format = data
	}
	return g.client.SubmitChat(ctx, r, remoteMessages(req.Messages), format)
}

func remoteMessages(messages []prompt.Message) []remote.Message {
	out := make([]remote.Message, len(messages))
	for i, m := range messages {
		var text strings.Builder
		for _, p := range m.Pieces {
			text.WriteString(p.Text)
		}
		out[i] = remote.Message{Role: m.Role, Content: text.String()}
	}
	return out
}

// remoteFailure gives the failures of another server their codes. What it said goes
// to the log.
func remoteFailure(err error) error {
	var full *engine.QueueFullError
	var status *remote.StatusError
	switch {
	case errors.As(err, &full):
		return &answer.Error{Code: answer.Busy, Message: "the inference server is busy", RetryAfter: max(full.Wait, minRetry), Err: err}
	case errors.Is(err, remote.ErrStalled):
		return &answer.Error{Code: answer.Timeout, Message: "the inference server sends nothing any more", Err: err}
	case errors.As(err, &status) && status.Code == http.StatusBadRequest && strings.Contains(status.Message, "context_length_exceeded"):
		return &answer.Error{Code: answer.OverBudget, Message: "prompt and answer do not fit the inference server's window", Err: err}
	case errors.Is(err, remote.ErrServer):
		return &answer.Error{Code: answer.Unavailable, Message: "the inference server failed or cannot be reached", Err: err}
	}
	return err
}
