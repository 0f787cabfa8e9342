package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
	"ragd/internal/keys"
)

// minRetry is the least that Retry-After says.
const minRetry = time.Second

// KeyRequest is the body of POST /v1/keys.
type KeyRequest struct {
	Name   string    `json:"name"`
	Tenant string    `json:"tenant"`
	Role   keys.Role `json:"role"`
	keys.Limits
}

// NewKey is a key that was just made, the only time its secret is told.
type NewKey struct {
	keys.Key
	Secret string `json:"secret"`
}

// KeyList lists the valid keys.
type KeyList struct {
	Keys []keys.Key `json:"keys"`
}

func (s *server) addKey(c *gin.Context) {
	var req KeyRequest
	if err := s.decode(c, &req); err != nil {
		s.fail(c, err, "")
		return
	}
	k, secret, err := s.Guard.Add(c.Request.Context(), keys.Key{Name: req.Name, Tenant: req.Tenant, Role: req.Role, Limits: req.Limits})
	if err != nil {
		s.fail(c, keyError(err), "")
		return
	}
	c.JSON(http.StatusOK, NewKey{k, secret})
}

func (s *server) listKeys(c *gin.Context) {
	list, err := s.Guard.List(c.Request.Context())
	if err != nil {
		s.fail(c, err, "")
		return
	}
	c.JSON(http.StatusOK, KeyList{list})
}

func (s *server) revokeKey(c *gin.Context) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil {
		s.fail(c, &answer.Error{Code: answer.Invalid, Field: "id", Message: "id: a whole number is wanted"}, "")
		return
	}
	if err := s.Guard.Revoke(c.Request.Context(), id); err != nil {
		s.fail(c, keyError(err), "")
		return
	}
	c.JSON(http.StatusOK, revokedBody{id})
}

func keyError(err error) error {
	switch {
	case errors.Is(err, keys.ErrInvalid):
		return &answer.Error{Code: answer.Invalid, Message: err.Error()}
	case errors.Is(err, keys.ErrNotFound):
		return &answer.Error{Code: answer.NotFound, Field: "id", Message: "no such key"}
	}
	return err
}
