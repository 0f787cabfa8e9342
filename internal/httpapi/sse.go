package httpapi

import (
	"encoding/json"
	"fmt"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// eventStream writes an answer as Server-Sent Events (WHATWG HTML §9.2). Each
// event is flushed at once. A write error needs no handling: net/http cancels the
// request's context when the client is gone.
type eventStream struct {
	c       *gin.Context
	started bool
}

// Begun puts the trace id where a client has it even if the answer breaks off.
func (s *eventStream) Begun(traceID string) { s.c.Header(traceHeader, traceID) }

func (s *eventStream) Queued(position int) {
	s.send("queued", map[string]int{"position": position})
}

func (s *eventStream) Sources(v answer.Sources) { s.send("sources", v) }

func (s *eventStream) Delta(text string) { s.send("delta", map[string]string{"text": text}) }

func (s *eventStream) Citation(v answer.Citation) { s.send("citation", v) }

func (s *eventStream) send(event string, v any) {
	if !s.started {
		s.started = true
		h := s.c.Writer.Header()
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
	}
	// JSON holds no line breaks, so one data line carries it.
	data, err := json.Marshal(v)
	if err != nil {
		s.c.Error(err)
		return
	}
	if event != "" {
		fmt.Fprintf(s.c.Writer, "event: %s\n", event)
	}
	fmt.Fprintf(s.c.Writer, "data: %s\n\n", data)
	s.c.Writer.Flush()
}
