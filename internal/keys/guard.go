package keys

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	// fresh is how long what the database said is believed: a key that is revoked by
	// another process may be used that long.
	fresh = 5 * time.Second
	// maxCached bounds the answers that are remembered.
	maxCached = 4096
)

// Guard tells callers apart and holds them to their limits. It is safe for
// concurrent use. Limits are those of this process.
type Guard struct {
	*Store
	operator [][sha256.Size]byte
	now      func() time.Time

	mu     sync.Mutex
	cached map[[sha256.Size]byte]answer
	anyAt  time.Time
	some   bool
	meters map[int64]*Meter
}

// answer is what the database said of a hash.
type answer struct {
	key Key
	err error // nil or ErrNotFound
	at  time.Time
}

// NewGuard guards with the keys of the store and with those of the operator's
// settings, which are SHA-256 in hex, administer the default tenant and have no
// limits.
func NewGuard(store *Store, operator []string) (*Guard, error) {
	g := &Guard{Store: store, now: time.Now, cached: map[[sha256.Size]byte]answer{}, meters: map[int64]*Meter{}}
	for _, k := range operator {
		raw, err := hex.DecodeString(strings.ToLower(k))
		if err != nil || len(raw) != sha256.Size {
			return nil, fmt.Errorf("%w: not a SHA-256 in hex", ErrInvalid)
		}
		g.operator = append(g.operator, [sha256.Size]byte(raw))
	}
	return g, nil
}

// Needed reports whether callers need a key: as soon as there is one.
func (g *Guard) Needed(ctx context.Context) (bool, error) {
	if len(g.operator) > 0 {
		return true, nil
	}
	g.mu.Lock()
	known := g.now().Sub(g.anyAt) < fresh
	some := g.some
	g.mu.Unlock()
	if known {
		return some, nil
	}
	some, err := g.any(ctx)
	if err != nil {
		return true, err
	}
	g.mu.Lock()
	g.some, g.anyAt = some, g.now()
	g.mu.Unlock()
	return some, nil
}

// Identify returns the key of a secret, or ErrNotFound.
func (g *Guard) Identify(ctx context.Context, secret string) (Key, error) {
	hash := Hash(secret)
	known := 0
	for i := range g.operator {
		known |= subtle.ConstantTimeCompare(hash[:], g.operator[i][:])
	}
	if known == 1 {
		k := Key{Role: Admin, Name: "server.keys"}
		return k, k.Normalise()
	}
	g.mu.Lock()
	a, ok := g.cached[hash]
	g.mu.Unlock()
	if ok && g.now().Sub(a.at) < fresh {
		return a.key, a.err
	}
	key, err := g.find(ctx, hash)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Key{}, err
	}
	g.remember(hash, answer{key, err, g.now()})
	return key, err
}

// remember keeps an answer; when there are too many all are forgotten, which costs
// a question to the database each.
func (g *Guard) remember(hash [sha256.Size]byte, a answer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.cached) >= maxCached {
		clear(g.cached)
	}
	g.cached[hash] = a
}

// forget makes the guard look again.
func (g *Guard) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.cached)
	g.anyAt = time.Time{}
}

// Add is Store.Add; the key counts at once.
func (g *Guard) Add(ctx context.Context, k Key) (Key, string, error) {
	defer g.forget()
	return g.Store.Add(ctx, k)
}

// Revoke is Store.Revoke; the key ends at once in this process.
func (g *Guard) Revoke(ctx context.Context, id int64) error {
	defer g.forget()
	return g.Store.Revoke(ctx, id)
}

// Enter lets a request of a key in, or refuses it with a *LimitError. The meter is
// told of tokens and that the request is over.
func (g *Guard) Enter(k Key) (*Meter, error) {
	if k.Limits == (Limits{}) {
		return &Meter{now: g.now}, nil
	}
	g.mu.Lock()
	m := g.meters[k.ID]
	if m == nil || m.limits != k.Limits {
		m = newMeter(k.Limits, g.now)
		g.meters[k.ID] = m
	}
	g.mu.Unlock()
	return m, m.enter()
}
