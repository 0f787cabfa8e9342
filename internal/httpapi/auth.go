package httpapi

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
	"ragd/internal/keys"
	"ragd/internal/tenant"
)

// Guard tells callers apart; *keys.Guard is one.
type Guard interface {
	// Needed reports whether a caller needs a key at all.
	Needed(ctx context.Context) (bool, error)
	Identify(ctx context.Context, secret string) (keys.Key, error)
	Enter(k keys.Key) (*keys.Meter, error)
	Add(ctx context.Context, k keys.Key) (keys.Key, string, error)
	List(ctx context.Context) ([]keys.Key, error)
	Revoke(ctx context.Context, id int64) error
}

// Where a request's key and meter are kept.
const (
	keyInUse   = "ragd.key"
	meterInUse = "ragd.meter"
)

// authorize asks for a key with a role, where keys are needed, and makes the
// request its tenant's. Without keys everybody is the operator.
func (s *server) authorize(need keys.Role) gin.HandlerFunc {
	return func(c *gin.Context) {
		k, err := s.caller(c)
		switch {
		case errors.Is(err, keys.ErrNotFound):
			c.Header("WWW-Authenticate", "Bearer")
			err = &answer.Error{Code: unauthorized, Message: "a valid key is needed: Authorization: Bearer KEY"}
		case err != nil:
			err = &answer.Error{Code: answer.Unavailable, Message: "keys cannot be looked up: the database cannot be reached; try again", Err: err}
		case !k.Role.May(need):
			err = &answer.Error{Code: forbidden, Message: "the key's role is " + string(k.Role) + ", this needs " + string(need)}
		}
		if err != nil {
			s.fail(c, err, "")
			return
		}
		c.Set(keyInUse, k)
		c.Request = c.Request.WithContext(tenant.With(c.Request.Context(), k.Tenant))
	}
}

func (s *server) caller(c *gin.Context) (keys.Key, error) {
	needed, err := s.Guard.Needed(c.Request.Context())
	if err != nil {
		return keys.Key{}, err
	}
	if !needed {
		return keys.Key{Role: keys.Admin, Tenant: tenant.Default}, nil
	}
	scheme, secret, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return keys.Key{}, keys.ErrNotFound
	}
	return s.Guard.Identify(c.Request.Context(), secret)
}

// limit holds the request to the limits of its key.
func (s *server) limit(c *gin.Context) {
	k, _ := c.MustGet(keyInUse).(keys.Key)
	m, err := s.Guard.Enter(k)
	var over *keys.LimitError
	if errors.As(err, &over) {
		err = &answer.Error{Code: answer.Busy, Message: over.Error(), RetryAfter: max(over.RetryAfter, minRetry)}
	}
	if err != nil {
		s.fail(c, err, "")
		return
	}
	defer m.Leave()
	c.Set(meterInUse, m)
	c.Next()
}

// spend counts a request's tokens against the limit of its key.
func spend(c *gin.Context, tokens int) {
	if m, ok := c.Value(meterInUse).(*keys.Meter); ok {
		m.Spend(tokens)
	}
}

// loopbackOnly keeps reading files of the server's machine to its own operator.
func (s *server) loopbackOnly(c *gin.Context) {
	host, _, err := net.SplitHostPort(c.Request.RemoteAddr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsLoopback() {
		return
	}
	s.fail(c, &answer.Error{Code: forbidden, Message: "files of the server can only be ingested from the server itself"}, "")
}

// Loopback reports whether an address to listen on is reached from this machine
// only.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
