package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"strings"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// authorize asks for a bearer key when keys are configured.
func (s *server) authorize(c *gin.Context) {
	if len(s.cfg.Keys) == 0 || s.known(c.GetHeader("Authorization")) {
		return
	}
	c.Header("WWW-Authenticate", "Bearer")
	s.fail(c, &answer.Error{Code: unauthorized, Message: "a valid key is needed: Authorization: Bearer KEY"}, "")
}

func (s *server) known(header string) bool {
	key, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return false
	}
	sum := sha256.Sum256([]byte(key))
	got := []byte(hex.EncodeToString(sum[:]))
	found := 0
	for _, k := range s.cfg.Keys {
		found |= subtle.ConstantTimeCompare(got, []byte(strings.ToLower(k)))
	}
	return found == 1
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
