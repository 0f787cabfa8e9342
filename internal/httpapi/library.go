package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// readyTimeout bounds the question to the database behind /readyz.
const readyTimeout = 2 * time.Second

// maxPaths bounds the lists of paths in a request.
const maxPaths = 10000

const defaultCollection = "default"

// validatePaths checks what a request about documents names.
func validatePaths(collection string, paths []string) error {
	if len(paths) == 0 || len(paths) > maxPaths {
		return &answer.Error{Code: answer.Invalid, Field: "paths", Message: fmt.Sprintf("paths: %d given, 1 to %d are needed", len(paths), maxPaths)}
	}
	for i, p := range paths {
		if err := answer.ValidateText(fmt.Sprintf("paths[%d]", i), p); err != nil {
			return err
		}
	}
	return answer.ValidateCollection(collection)
}

func (s *server) healthz(c *gin.Context) {
	c.JSON(http.StatusOK, healthBody{"alive", s.cfg.Version})
}

func (s *server) readyz(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		s.fail(c, &answer.Error{Code: answer.Unavailable, Message: "not ready: the database cannot be reached", Err: err}, "")
		return
	}
	c.JSON(http.StatusOK, healthBody{Status: "ready"})
}

func (s *server) collections(c *gin.Context) {
	list, err := s.Library.Collections(c.Request.Context())
	if err != nil {
		s.fail(c, err, "")
		return
	}
	c.JSON(http.StatusOK, collectionsBody{list})
}

func (s *server) documents(c *gin.Context) {
	collection := cmp.Or(c.Query("collection"), defaultCollection)
	if err := answer.ValidateCollection(collection); err != nil {
		s.fail(c, err, "")
		return
	}
	list, err := s.Library.Documents(c.Request.Context(), collection)
	if err != nil {
		s.fail(c, err, "")
		return
	}
	c.JSON(http.StatusOK, documentsBody{list})
}

type deleteRequest struct {
	Collection string   `json:"collection"`
	Paths      []string `json:"paths"`
}

func (s *server) deleteDocuments(c *gin.Context) {
	var req deleteRequest
	if err := s.decode(c, &req); err != nil {
		s.fail(c, err, "")
		return
	}
	if req.Collection == "" {
		req.Collection = defaultCollection
	}
	if err := validatePaths(req.Collection, req.Paths); err != nil {
		s.fail(c, err, "")
		return
	}
	n, err := s.Library.Delete(c.Request.Context(), req.Collection, req.Paths)
	if err != nil {
		s.fail(c, err, "")
		return
	}
	c.JSON(http.StatusOK, deletedBody{n})
}
