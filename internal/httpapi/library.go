package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// readyTimeout bounds the question to the database behind /readyz.
const readyTimeout = 2 * time.Second

// maxPaths bounds the lists of paths in a request.
const maxPaths = 10000

func (s *server) healthz(c *gin.Context) {
	c.JSON(http.StatusOK, gin.H{"status": "alive", "version": s.cfg.Version})
}

func (s *server) readyz(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		s.fail(c, &answer.Error{Code: answer.Unavailable, Message: "not ready: the database cannot be reached", Err: err}, "")
		return
	}
	c.JSON(http.StatusOK, gin.H{"status": "ready"})
}

func (s *server) models(c *gin.Context) {
	c.JSON(http.StatusOK, gin.H{"object": "list", "data": s.Models})
}

func (s *server) collections(c *gin.Context) {
	list, err := s.Library.Collections(c.Request.Context())
	if err != nil {
		s.fail(c, err, "")
		return
	}
	c.JSON(http.StatusOK, gin.H{"collections": list})
}

func (s *server) documents(c *gin.Context) {
	list, err := s.Library.Documents(c.Request.Context(), c.DefaultQuery("collection", "default"))
	if err != nil {
		s.fail(c, err, "")
		return
	}
	c.JSON(http.StatusOK, gin.H{"documents": list})
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
		req.Collection = "default"
	}
	if len(req.Paths) == 0 || len(req.Paths) > maxPaths {
		s.fail(c, &answer.Error{Code: answer.Invalid, Field: "paths", Message: "paths: 1 to 10000 paths are needed"}, "")
		return
	}
	n, err := s.Library.Delete(c.Request.Context(), req.Collection, req.Paths)
	if err != nil {
		s.fail(c, err, "")
		return
	}
	c.JSON(http.StatusOK, gin.H{"deleted": n})
}
