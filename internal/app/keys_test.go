package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ragd/internal/keys"
)

// with sends a request with a key and returns status, headers and body.
func (l *live) with(t *testing.T, secret, method, path, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, l.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

func (l *live) key(t *testing.T, k keys.Key) string {
	t.Helper()
	_, secret, err := l.AddKey(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// TestTenants: a key sees its tenant's documents only, by whatever route it asks;
// what it costs others, and whether they are there, it cannot tell.
func TestTenants(t *testing.T) {
	l := start(t, settings(t))
	name := l.notes(t) // the default tenant's
	a, b := l.key(t, keys.Key{Tenant: "tenant-alpha", Role: keys.Ingest}), l.key(t, keys.Key{Tenant: "tenant-beta", Role: keys.Ingest})
	operator := l.key(t, keys.Key{Role: keys.Admin})
	dir := write(t, map[string]string{"secret.md": "# Harbour\n\nThe harbour code of alpha is seven larches.\n"})
	if status, _, data := l.with(t, a, "POST", "/v1/ingest", fmt.Sprintf(`{"paths":[%q],"collection":"shared"}`, dir)); status != 200 || !strings.Contains(data, `"indexed":1`) {
		t.Fatalf("ingest: %d %s", status, data)
	}
	const ask = `{"question":"What is the harbour code of alpha?","collection":"shared","answer_mode":"extract"}`
	if status, _, data := l.with(t, a, "POST", "/ask", ask); status != 200 || !strings.Contains(data, "seven larches") {
		t.Errorf("its own: %d %s", status, data)
	}
	for _, secret := range []string{b, operator} {
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/ask", ask},
			{"POST", "/v1/search", `{"query":"harbour code","collection":"shared"}`},
			{"GET", "/v1/documents?collection=shared", ""},
			{"GET", "/v1/collections", ""},
			{"GET", "/v1/models", ""},
			{"DELETE", "/v1/documents", fmt.Sprintf(`{"collection":"shared","paths":[%q]}`, dir+"/secret.md")},
			{"POST", "/v1/chat/completions", `{"model":"ragd/shared","messages":[{"role":"user","content":"What is the harbour code?"}]}`},
		} {
			if _, _, data := l.with(t, secret, c.method, c.path, c.body); strings.Contains(data, "larches") || strings.Contains(data, "secret.md") || strings.Contains(data, `"name":"shared"`) || strings.Contains(data, "ragd/shared") {
				t.Errorf("another's %s %s: %s", c.method, c.path, data)
			}
		}
	}
	if _, _, data := l.with(t, a, "GET", "/v1/collections", ""); strings.Contains(data, name) {
		t.Errorf("the default tenant's collection is listed: %s", data)
	}
	if status, _, data := l.with(t, a, "GET", "/v1/documents?collection=shared", ""); status != 200 || !strings.Contains(data, "secret.md") {
		t.Errorf("deleted by another: %d %s", status, data)
	}
	_, _, metrics := l.with(t, operator, "GET", "/metrics", "")
	if strings.Contains(metrics, "tenant-") || !strings.Contains(metrics, "ragd_request_duration") {
		t.Errorf("metrics tell of tenants, or are none: %.300s", metrics)
	}
}

// TestPrefixCacheByTenant: the same prompt is warm for who sent it, cold for others.
func TestPrefixCacheByTenant(t *testing.T) {
	l := start(t, settings(t))
	a, b := l.key(t, keys.Key{Tenant: "a"}), l.key(t, keys.Key{Tenant: "b"})
	chat := fmt.Sprintf(`{"model":%q,"max_tokens":1,"messages":[{"role":"user","content":%q}]}`, l.models()[0].ID, strings.Repeat("the tide comes in. ", 20))
	cached := func(secret string) bool {
		status, _, data := l.with(t, secret, "POST", "/v1/chat/completions", chat)
		if status != 200 {
			t.Fatalf("%d %s", status, data)
		}
		return !strings.Contains(data, `"cached_tokens":0`)
	}
	if cached(a) {
		t.Error("warm at first")
	}
	if !cached(a) {
		t.Error("cold for the same tenant")
	}
	if cached(b) {
		t.Error("warm for another tenant")
	}
}

func TestKeysOverHTTP(t *testing.T) {
	l := start(t, settings(t))
	if status, _, data := l.with(t, "", "GET", "/v1/models", ""); status != 200 {
		t.Fatalf("without any keys: %d %s", status, data)
	}
	admin, ask := l.key(t, keys.Key{Role: keys.Admin}), l.key(t, keys.Key{Role: keys.Ask, Limits: keys.Limits{RequestsPerMinute: 1}})
	search := `{"query":"a","collection":"none"}`
	for _, c := range []struct {
		secret, method, path, body string
		status                     int
	}{
		{"", "GET", "/healthz", "", 200},
		{"", "POST", "/ask", `{"question":"q"}`, 401},
		{"ragd_WRONG", "GET", "/v1/models", "", 401},
		{ask, "GET", "/v1/models", "", 200},
		{ask, "GET", "/metrics", "", 403},
		{ask, "GET", "/debug/latency/data", "", 403},
		{ask, "GET", "/v1/keys", "", 403},
		{ask, "POST", "/v1/ingest", `{"paths":["/x"]}`, 403},
		{ask, "DELETE", "/v1/documents", `{"paths":["/x"]}`, 403},
		{ask, "POST", "/v1/search", search, 404},
		{ask, "POST", "/v1/search", search, 429},
		{admin, "POST", "/v1/keys", `{"tenant":"no spaces"}`, 400},
		{admin, "POST", "/v1/keys", `{"tenant":"t","role":"ask","concurrent":2,"name":"n"}`, 200},
		{admin, "DELETE", "/v1/keys/999", "", 404},
		{admin, "DELETE", "/v1/keys/x", "", 400},
		{admin, "GET", "/metrics", "", 200},
	} {
		status, header, data := l.with(t, c.secret, c.method, c.path, c.body)
		if status != c.status {
			t.Errorf("%s %s: %d %.200s, want %d", c.method, c.path, status, data, c.status)
		}
		if (status == 429) != (header.Get("Retry-After") != "") || (status == 401) != (header.Get("WWW-Authenticate") != "") {
			t.Errorf("%s %s: %d with %v", c.method, c.path, status, header)
		}
	}
	_, _, list := l.with(t, admin, "GET", "/v1/keys", "")
	if !strings.Contains(list, `"tenant":"t"`) || strings.Contains(list, "ragd_") || strings.Contains(list, "hash") {
		t.Errorf("list: %s", list)
	}
	if status, _, data := l.with(t, admin, "DELETE", "/v1/keys/2", ""); status != 200 {
		t.Errorf("revoke: %d %s", status, data)
	}
	if status, _, _ := l.with(t, ask, "GET", "/v1/models", ""); status != 401 {
		t.Errorf("revoked, yet %d", status)
	}
}

// Tokens and running answers are limited, too.
func TestKeyLimitsOfAnswers(t *testing.T) {
	l := start(t, settings(t))
	model := l.models()[0].ID
	chat := func(tokens int, text string) string {
		return fmt.Sprintf(`{"model":%q,"max_tokens":%d,"stream":%v,"temperature":10,"seed":7,"messages":[{"role":"user","content":%q}]}`, model, tokens, tokens > 100, text)
	}
	poor := l.key(t, keys.Key{Limits: keys.Limits{TokensPerMinute: 20}})
	if status, _, data := l.with(t, poor, "POST", "/v1/chat/completions", chat(5, "Tell of the sea and of the harbour.")); status != 200 {
		t.Fatalf("%d %s", status, data)
	}
	status, header, data := l.with(t, poor, "POST", "/v1/chat/completions", chat(5, "hi"))
	if status != 429 || header.Get("Retry-After") == "" || !strings.Contains(data, "tokens_per_minute") || !strings.Contains(data, "rate_limit_error") {
		t.Errorf("over the tokens: %d %v %s", status, header, data)
	}
	single := l.key(t, keys.Key{Limits: keys.Limits{Concurrent: 1}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", l.url+"/v1/chat/completions", strings.NewReader(chat(2000, "Tell a story.")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+single)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if status, _, data := l.with(t, single, "POST", "/v1/chat/completions", chat(5, "hi")); status != 429 || !strings.Contains(data, "concurrent") {
		t.Errorf("a second one: %d %s", status, data)
	}
	cancel()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if status, _, _ := l.with(t, single, "POST", "/v1/chat/completions", chat(5, "hi")); status == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the place of a client that is gone is not free")
		}
	}
}

// Beyond loopback there must be a key, in the settings or in the database.
func TestServingOthersNeedsAKey(t *testing.T) {
	l := start(t, settings(t))
	cfg := l.cfg
	cfg.Server.Addr = "0.0.0.0:0"
	if _, err := Listen(cfg); err == nil || !strings.Contains(err.Error(), "server.keys") {
		t.Errorf("listen: %v", err)
	}
	cfg.Server.DatabaseKeys = true
	listener, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := l.Serve(t.Context(), listener); err == nil || !strings.Contains(err.Error(), "ragd keys add") {
		t.Errorf("serve: %v", err)
	}
}
