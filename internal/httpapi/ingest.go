package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/gin-gonic/gin"

	"ragd/ingest"
	"ragd/internal/answer"
)

// ingestLine is one line of the newline-delimited JSON that /v1/ingest streams:
// first the id that DELETE /v1/ingest/ID takes, then progress, at last the report.
type ingestLine struct {
	ID       string           `json:"id,omitempty"`
	Progress *ingest.Progress `json:"progress,omitempty"`
	Report   *ingest.Report   `json:"report,omitempty"`
	Error    *errorDetail     `json:"error,omitempty"`
}

func (s *server) ingest(c *gin.Context) {
	var req IngestRequest
	if err := s.decode(c, &req); err != nil {
		s.fail(c, err, "")
		return
	}
	if err := validateIngest(&req); err != nil {
		s.fail(c, err, "")
		return
	}
	ctx, id, end := s.beginIngest(c.Request.Context())
	defer end()
	c.Header("Content-Type", "application/x-ndjson")
	enc := json.NewEncoder(c.Writer)
	line := func(l ingestLine) {
		if err := enc.Encode(l); err != nil {
			c.Error(err)
		}
		c.Writer.Flush()
	}
	line(ingestLine{ID: id})
	report, err := s.Ingester.Ingest(ctx, req, func(p ingest.Progress) { line(ingestLine{Progress: &p}) })
	if err != nil && !report.Interrupted {
		e := answer.AsError(err)
		s.logError(c, e, "")
		line(ingestLine{Report: &report, Error: &errorDetail{Code: e.Code, Message: e.Message, Field: e.Field}})
		return
	}
	line(ingestLine{Report: &report})
}

// validateIngest fills in the collection. A relative path would be one of the
// server's own folder, which the caller cannot know.
func validateIngest(req *IngestRequest) error {
	if req.Collection == "" {
		req.Collection = defaultCollection
	}
	for i, p := range req.Paths {
		if !filepath.IsAbs(p) {
			field := fmt.Sprintf("paths[%d]", i)
			return &answer.Error{Code: answer.Invalid, Field: field, Message: fmt.Sprintf("%s: %q is not an absolute path", field, p)}
		}
	}
	return validatePaths(req.Collection, req.Paths)
}

// beginIngest gives a run its id and a context that ends with the request, by
// DELETE, or when the server shuts down.
func (s *server) beginIngest(parent context.Context) (ctx context.Context, id string, end func()) {
	ctx, cancel := context.WithCancel(parent)
	id = rand.Text()
	s.ingests.Store(id, cancel)
	done := make(chan struct{})
	go func() {
		select {
		case <-s.Stopping:
			cancel()
		case <-done:
		}
	}()
	return ctx, id, func() {
		close(done)
		s.ingests.Delete(id)
		cancel()
	}
}

// stopIngest ends a run early. The report comes where the run was asked for.
func (s *server) stopIngest(c *gin.Context) {
	cancel, ok := s.ingests.Load(c.Param("id"))
	if !ok {
		s.fail(c, &answer.Error{Code: answer.NotFound, Field: "id", Message: "no such ingest is running"}, "")
		return
	}
	cancel.(context.CancelFunc)()
	c.JSON(http.StatusOK, stoppingBody{c.Param("id")})
}
