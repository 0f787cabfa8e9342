// Package keys says who may call, as whom, and how much: keys with a tenant, a role
// and limits. A key is shown once, when it is made; only its SHA-256 is kept, which
// is enough since a key is 130 random bits.
package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ragd/internal/tenant"
)

// Role is what a key may do; each role may do what those before it may.
type Role string

// The roles, the least first.
const (
	Ask    Role = "ask"    // ask, search, list
	Ingest Role = "ingest" // also read in and delete documents
	Admin  Role = "admin"  // also keys, metrics and the figures of all requests
)

var roles = []Role{Ask, Ingest, Admin}

// May reports whether the role includes another.
func (r Role) May(need Role) bool { return slices.Index(roles, r) >= slices.Index(roles, need) }

// Limits of a key; 0 does not limit.
type Limits struct {
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	// TokensPerMinute counts what the model reads and writes. A request is let in
	// while any are left, so the last one may take more than that; the debt is waited for.
	TokensPerMinute int `json:"tokens_per_minute,omitempty"`
	// Concurrent is how many requests may run at once.
	Concurrent int `json:"concurrent,omitempty"`
}

// Key is one key without its secret.
type Key struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Tenant string `json:"tenant"`
	Role   Role   `json:"role"`
	Limits
	Created time.Time `json:"created"`
}

var (
	// ErrInvalid is a key that cannot be made; the text says why.
	ErrInvalid = errors.New("invalid key")
	// ErrNotFound is a key that is not there, or was revoked.
	ErrNotFound = errors.New("no such key")
)

// tenantName is what a tenant may be called.
var tenantName = regexp.MustCompile(`^[\pL\pN._-]{1,64}$`)

// maxLimit bounds the limits: they are integers of the database.
const maxLimit = 1 << 30

// Normalise fills in defaults and checks the rest; the error is ErrInvalid.
func (k *Key) Normalise() error {
	if k.Tenant == "" {
		k.Tenant = tenant.Default
	}
	if k.Role == "" {
		k.Role = Ask
	}
	switch {
	case !tenantName.MatchString(k.Tenant):
		return fmt.Errorf("%w: tenant %q: 1 to 64 letters, digits, dots, dashes and underscores are allowed", ErrInvalid, k.Tenant)
	case !slices.Contains(roles, k.Role):
		return fmt.Errorf("%w: role %q is not ask, ingest or admin", ErrInvalid, k.Role)
	case len(k.Name) > 256 || strings.ContainsRune(k.Name, 0):
		return fmt.Errorf("%w: name: at most 256 bytes are allowed", ErrInvalid)
	}
	for name, n := range map[string]int{"requests_per_minute": k.RequestsPerMinute, "tokens_per_minute": k.TokensPerMinute, "concurrent": k.Concurrent} {
		if n < 0 || n > maxLimit {
			return fmt.Errorf("%w: %s: %d is not between 0 and %d", ErrInvalid, name, n, maxLimit)
		}
	}
	return nil
}

// prefix lets people and scanners tell what a leaked string is.
const prefix = "ragd_"

// newSecret makes a key.
func newSecret() string { return prefix + rand.Text() }

// Hash is what is kept of a secret.
func Hash(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }
