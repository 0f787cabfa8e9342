package keys

import (
	"fmt"
	"sync"
	"time"
)

// LimitError is a request over a limit of its key.
type LimitError struct {
	Limit string // the limit's name
	Value int
	// RetryAfter is when it will be let in; 0 where nobody can tell.
	RetryAfter time.Duration
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the key's limit %s of %d is reached", e.Limit, e.Value)
}

// Meter counts what a key takes. The zero value counts nothing.
type Meter struct {
	limits Limits
	now    func() time.Time

	mu               sync.Mutex
	requests, tokens bucket
	running          int
}

func newMeter(l Limits, now func() time.Time) *Meter {
	at := now()
	return &Meter{
		limits: l, now: now,
		requests: bucket{float64(l.RequestsPerMinute), at}, tokens: bucket{float64(l.TokensPerMinute), at},
	}
}

// enter takes a request in.
func (m *Meter) enter() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if n := m.limits.Concurrent; n > 0 && m.running >= n {
		return &LimitError{Limit: "concurrent", Value: n}
	}
	if n := m.limits.TokensPerMinute; n > 0 {
		if wait := m.tokens.wait(n, 1, now); wait > 0 {
			return &LimitError{"tokens_per_minute", n, wait}
		}
	}
	if n := m.limits.RequestsPerMinute; n > 0 {
		if wait := m.requests.wait(n, 1, now); wait > 0 {
			return &LimitError{"requests_per_minute", n, wait}
		}
		m.requests.level--
	}
	m.running++
	return nil
}

// Leave says that the request is over.
func (m *Meter) Leave() {
	m.mu.Lock()
	m.running--
	m.mu.Unlock()
}

// Spend counts tokens. They may leave a debt, which later requests wait for.
func (m *Meter) Spend(tokens int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.limits.TokensPerMinute; n > 0 {
		m.tokens.wait(n, 1, m.now())
		m.tokens.level -= float64(tokens)
	}
}

// bucket holds a minute's worth and fills up evenly.
type bucket struct {
	level float64
	at    time.Time
}

// wait fills the bucket and returns how long it takes until need is in it.
func (b *bucket) wait(perMinute int, need float64, now time.Time) time.Duration {
	rate := float64(perMinute) / 60
	b.level = min(float64(perMinute), b.level+rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.level >= need {
		return 0
	}
	return time.Duration((need - b.level) / rate * float64(time.Second))
}
