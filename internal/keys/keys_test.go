package keys

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"ragd/internal/testenv"
)

func TestRoles(t *testing.T) {
	for _, c := range []struct {
		has, need Role
		want      bool
	}{{Ask, Ask, true}, {Ask, Ingest, false}, {Ingest, Ask, true}, {Ingest, Admin, false}, {Admin, Ingest, true}, {"", Ask, false}, {"root", Ask, false}} {
		if got := c.has.May(c.need); got != c.want {
			t.Errorf("%q may %q: %v", c.has, c.need, got)
		}
	}
}

func TestKeyBounds(t *testing.T) {
	for name, k := range map[string]Key{
		"tenant": {Tenant: "a b"}, "role": {Role: "root"}, "name": {Name: strings.Repeat("x", 300)}, "requests_per_minute": {Limits: Limits{RequestsPerMinute: -1}},
	} {
		if err := k.Normalise(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	k := Key{}
	if err := k.Normalise(); err != nil || k.Tenant != "default" || k.Role != Ask {
		t.Errorf("%+v %v", k, err)
	}
}

// clock is a time that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// A key's life: made, found by its secret alone, revoked; the secret is not kept.
func TestKeyLife(t *testing.T) {
	ctx, pool := t.Context(), testenv.Database(t)
	operator := Hash("of the operator")
	g, err := NewGuard(NewStore(pool), []string{strings.ToUpper(hex.EncodeToString(operator[:]))})
	if err != nil {
		t.Fatal(err)
	}
	if k, err := g.Identify(ctx, "of the operator"); err != nil || k.Role != Admin || k.Tenant != "default" {
		t.Errorf("operator: %+v %v", k, err)
	}
	want := Key{Name: "team", Tenant: "팀-1", Role: Ingest, Limits: Limits{RequestsPerMinute: 3}}
	made, secret, err := g.Add(ctx, want)
	if err != nil {
		t.Fatal(err)
	}
	found, err := g.Identify(ctx, secret)
	if err != nil || found.ID != made.ID || found.Tenant != want.Tenant || found.Limits != want.Limits {
		t.Errorf("found %+v (%v), made %+v", found, err, made)
	}
	var kept string
	if err := pool.QueryRow(ctx, "SELECT string_agg(k::text, ' ') FROM ragd.keys k").Scan(&kept); err != nil || strings.Contains(kept, secret) {
		t.Errorf("the database holds %s (%v)", kept, err)
	}
	for _, wrong := range []string{"", secret + "x", secret[1:]} {
		if _, err := g.Identify(ctx, wrong); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if err := g.Revoke(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Identify(ctx, secret); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoked: %v", err)
	}
	if err := g.Revoke(ctx, made.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	if list, err := g.List(ctx); err != nil || len(list) != 0 {
		t.Errorf("list %v (%v)", list, err)
	}
}

// Another process's keys count, and its revocations, after a moment.
func TestGuardLooksAgain(t *testing.T) {
	ctx, pool := t.Context(), testenv.Database(t)
	other := NewStore(pool)
	c := &clock{time.Now()}
	g, err := NewGuard(NewStore(pool), nil)
	if err != nil {
		t.Fatal(err)
	}
	g.now = c.now
	if needed, err := g.Needed(ctx); needed || err != nil {
		t.Errorf("without keys: needed %v %v", needed, err)
	}
	k, secret, err := other.Add(ctx, Key{})
	if err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(fresh)
	if needed, err := g.Needed(ctx); !needed || err != nil {
		t.Errorf("with a key: needed %v %v", needed, err)
	}
	if _, err := g.Identify(ctx, secret); err != nil {
		t.Error(err)
	}
	if err := other.Revoke(ctx, k.ID); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(fresh)
	if _, err := g.Identify(ctx, secret); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoked elsewhere: %v", err)
	}
}

func TestLimits(t *testing.T) {
	c := &clock{time.Now()}
	g := &Guard{now: c.now, meters: map[int64]*Meter{}}
	enter := func(k Key, limit string, wait time.Duration) *Meter {
		t.Helper()
		m, err := g.Enter(k)
		var over *LimitError
		if errors.As(err, &over) != (limit != "") || limit != "" && (over.Limit != limit || over.RetryAfter.Round(time.Millisecond) != wait) {
			t.Fatalf("got %v (%+v), want %q %v", err, over, limit, wait)
		}
		return m
	}
	requests := Key{ID: 1, Limits: Limits{RequestsPerMinute: 2}}
	enter(requests, "", 0)
	enter(requests, "", 0)
	enter(requests, "requests_per_minute", 30*time.Second)
	enter(Key{ID: 2, Limits: Limits{RequestsPerMinute: 2}}, "", 0) // another's are another's
	c.at = c.at.Add(30 * time.Second)
	enter(requests, "", 0)

	tokens := Key{ID: 3, Limits: Limits{TokensPerMinute: 60}}
	enter(tokens, "", 0).Spend(100)
	enter(tokens, "tokens_per_minute", 41*time.Second)
	c.at = c.at.Add(41 * time.Second)
	enter(tokens, "", 0)

	running := Key{ID: 4, Limits: Limits{Concurrent: 1}}
	m := enter(running, "", 0)
	enter(running, "concurrent", 0)
	m.Leave()
	enter(running, "", 0)
	enter(Key{}, "", 0).Spend(5) // without limits
}
