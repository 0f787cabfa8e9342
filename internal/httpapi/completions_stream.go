package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// completionChunk is one event of a streamed completion.
type completionChunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"`
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Choices []chunkChoice `json:"choices"`
	// Usage is null but in the last chunk, and absent where it was not asked for.
	Usage *json.RawMessage `json:"usage,omitempty"`
	completionExtra
}

type chunkChoice struct {
	Index        int        `json:"index"`
	Delta        chunkDelta `json:"delta"`
	Logprobs     *struct{}  `json:"logprobs"`
	FinishReason *string    `json:"finish_reason"`
}

type chunkDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// chunkStream writes a completion as Server-Sent Events, as OpenAI does: chunks
// without a name, and [DONE] at the end.
type chunkStream struct {
	events eventStream
	head   completionChunk
}

// Begun is that of any stream.
func (s *chunkStream) Begun(traceID string) { s.events.Begun(traceID) }

// Queued begins the answer: once a request waits it can only fail in the stream.
func (s *chunkStream) Queued(int) {
	if !s.events.started {
		s.send(chunkChoice{Delta: chunkDelta{Role: "assistant", Content: new(string)}}, completionExtra{})
	}
}

// Sources come with the last chunk.
func (s *chunkStream) Sources(answer.Sources) {}

// Delta sends text.
func (s *chunkStream) Delta(text string) {
	s.Queued(0)
	s.send(chunkChoice{Delta: chunkDelta{Content: &text}}, completionExtra{})
}

// Citation comes with the last chunk.
func (s *chunkStream) Citation(answer.Citation) {}

func (s *chunkStream) send(choice chunkChoice, extra completionExtra) {
	chunk := s.head
	chunk.Choices, chunk.completionExtra = []chunkChoice{choice}, extra
	s.events.send("", chunk)
}

// finish sends what is known at the end: the reason, ragd's report, the tokens.
func (s *chunkStream) finish(f *finished, withUsage bool) {
	s.Queued(0)
	reason := f.finishReason()
	s.send(chunkChoice{FinishReason: &reason}, f.extra())
	if withUsage {
		usage, err := json.Marshal(f.tokens())
		if err != nil {
			s.events.c.Error(err)
			return
		}
		last := s.head
		last.Choices, last.Usage = []chunkChoice{}, (*json.RawMessage)(&usage)
		s.events.send("", last)
	}
	fmt.Fprint(s.events.c.Writer, "data: [DONE]\n\n")
	s.events.c.Writer.Flush()
}

// streamCompletion answers in chunks. An error before the first has its status, a
// later one is the last event, and no [DONE] follows it.
func (s *server) streamCompletion(ctx context.Context, c *gin.Context, received time.Time, req *completionRequest) {
	withUsage := req.StreamOptions != nil && req.StreamOptions.IncludeUsage
	out := &chunkStream{events: eventStream{c: c}, head: completionChunk{
		ID: answer.NewID("chatcmpl-"), Object: "chat.completion.chunk", Created: received.Unix(), Model: req.Model,
	}}
	if withUsage {
		null := json.RawMessage("null")
		out.head.Usage = &null
	}
	f, err := s.complete(ctx, received, req, out)
	spend(c, f.tokens().TotalTokens)
	switch {
	case err == nil:
		out.finish(&f, withUsage)
	case !out.events.started:
		s.fail(c, err, f.traceID)
	default:
		e := answer.AsError(err)
		s.logError(c, e, f.traceID)
		out.events.send("", openAIBodyOf(e, f.traceID))
	}
}
