package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

func (s *server) ask(c *gin.Context) {
	received := time.Now()
	var req answer.Request
	err := s.decode(c, &req)
	if err == nil {
		err = req.Validate()
	}
	if err != nil {
		s.fail(c, err, s.Asker.Reject(c.Request.Context(), answer.RouteAsk, received, err))
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), s.cfg.RequestTimeout)
	defer cancel()
	if req.Stream {
		s.askStream(ctx, c, received, req)
		return
	}
	res, err := s.Asker.Ask(ctx, received, req, discard{})
	spend(c, res.Usage.InputTokens+res.Usage.OutputTokens)
	if err != nil {
		s.fail(c, err, res.TraceID)
		return
	}
	c.Header(traceHeader, res.TraceID)
	c.Header("Server-Timing", res.Timings.ServerTiming())
	c.JSON(http.StatusOK, res)
}

// askStream answers as Server-Sent Events. Nothing is written before the request
// is known to be good, so an early error still has its status.
func (s *server) askStream(ctx context.Context, c *gin.Context, received time.Time, req answer.Request) {
	out := &eventStream{c: c}
	res, err := s.Asker.Ask(ctx, received, req, out)
	spend(c, res.Usage.InputTokens+res.Usage.OutputTokens)
	switch {
	case err == nil:
		out.send("done", res)
	case !out.started:
		s.fail(c, err, res.TraceID)
	default:
		e := answer.AsError(err)
		s.logError(c, e, res.TraceID)
		out.send("error", bodyOf(e, res.TraceID))
	}
}

func (s *server) search(c *gin.Context) {
	received := time.Now()
	var req answer.SearchRequest
	if err := s.decode(c, &req); err != nil {
		s.fail(c, err, s.Asker.Reject(c.Request.Context(), answer.RouteSearch, received, err))
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), s.cfg.RequestTimeout)
	defer cancel()
	res, err := s.Asker.Search(ctx, req)
	if err != nil {
		s.fail(c, err, res.TraceID)
		return
	}
	c.Header(traceHeader, res.TraceID)
	c.Header("Server-Timing", res.Timings.ServerTiming())
	c.JSON(http.StatusOK, res)
}

// discard is the sink of a request that wants one body.
type discard struct{}

func (discard) Begun(string)             {}
func (discard) Queued(int)               {}
func (discard) Sources(answer.Sources)   {}
func (discard) Delta(string)             {}
func (discard) Citation(answer.Citation) {}
