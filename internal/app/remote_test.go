package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"ragd/internal/answer"
)

// peer is a server in the OpenAI form that says what a test wants of it.
type peer struct {
	*httptest.Server
	header http.Header
	body   map[string]any
	gone   chan struct{}
}

func newPeer(t *testing.T, say func(w http.ResponseWriter, r *http.Request)) *peer {
	t.Helper()
	p := &peer{gone: make(chan struct{}, 1)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.header, p.body = r.Header.Clone(), nil
		if err := json.NewDecoder(r.Body).Decode(&p.body); err != nil {
			t.Error(err)
		}
		// Only when the body is read does the server watch whether the client is there.
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		say(w, r)
		if r.Context().Err() != nil {
			select {
			case p.gone <- struct{}{}:
			default: // told already
			}
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// event1 sends one event.
func event1(w http.ResponseWriter, data string) {
	fmt.Fprintf(w, "data: %s\n\n", data)
	w.(http.Flusher).Flush()
}

// chatting answers in two pieces and counts 1,000 prompt tokens.
func chatting(w http.ResponseWriter, _ *http.Request) {
	event1(w, `{"choices":[{"delta":{"role":"assistant","content":""}}]}`)
	time.Sleep(20 * time.Millisecond)
	event1(w, `{"choices":[{"delta":{"content":"It is moss "}}]}`)
	time.Sleep(20 * time.Millisecond)
	event1(w, `{"choices":[{"delta":{"content":"& heather [1]."},"finish_reason":"stop"}]}`)
	event1(w, `{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":40}}}`)
	event1(w, `[DONE]`)
}

// front is a ragd in front of a server at url.
func front(t *testing.T, url, tokenizer string) *live {
	t.Helper()
	cfg := settings(t)
	r := &cfg.Inference.Remote
	r.URL, r.Model, r.APIKey, r.Tokenizer, r.Window, r.Stall = url+"/v1", "served", "secret-key", tokenizer, 4096, 400*time.Millisecond
	return start(t, cfg)
}

// TestRemoteLedgers: both ledgers stand over a server that counts and times itself.
func TestRemoteLedgers(t *testing.T) {
	p := newPeer(t, chatting)
	l := front(t, p.URL, "")
	c := l.notes(t)
	res := l.asked(t, body{"question": "What is the signal code?", "collection": c})
	if res.Answer != "It is moss & heather [1]." || len(res.Citations) != 1 || res.Model != "served" {
		t.Errorf("%+v", res)
	}
	u := res.Usage
	if u.InputTokens != 1000 || u.OutputTokens != 7 || u.CachedTokens != 40 || u.Ledger.Input() != 1000 || !u.Ledger.Estimated || u.Ledger.Evidence[0].Tokens == 0 {
		t.Errorf("usage %+v", u)
	}
	if tm := res.Timings; tm.LLMTTFT < 20*time.Millisecond || tm.TPOT == 0 || tm.TTFT == 0 {
		t.Errorf("timings %+v", tm)
	}
	if got := p.header.Get("traceparent"); !strings.Contains(got, res.TraceID) {
		t.Errorf("traceparent %q of trace %s", got, res.TraceID)
	}
	l.calls(t, res.TraceID, p.URL)
	if p.header.Get("Authorization") != "Bearer secret-key" || p.body["model"] != "served" || p.body["prompt"] != nil || len(p.body["messages"].([]any)) < 2 {
		t.Errorf("sent %v %v", p.header, p.body)
	}
}

// calls holds the span of the call to the server behind to the conventions: a client's,
// the parent of what that server makes of the request, with its address.
func (l *live) calls(t *testing.T, traceID, url string) {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range l.spans.GetSpans() {
		if s.Name != "chat served" || s.SpanContext.TraceID().String() != traceID {
			continue
		}
		found = true
		attrs := map[string]string{}
		for _, kv := range s.Attributes {
			attrs[string(kv.Key)] = kv.Value.String()
		}
		if s.SpanKind != trace.SpanKindClient || attrs["server.address"] != "127.0.0.1" || attrs["server.port"] != port || attrs["gen_ai.provider.name"] != "openai" {
			t.Errorf("the call is %v %v, the server listens at %s", s.SpanKind, attrs, url)
		}
	}
	if !found {
		t.Errorf("no span of the call in trace %s", traceID)
	}
}

// TestRemoteFollowUp: the order to rewrite a follow-up question goes to the server as
// messages, which it renders itself.
func TestRemoteFollowUp(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	p := newPeer(t, nil)
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Messages []struct{ Content string } }
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || len(req.Messages) == 0 {
			http.Error(w, "messages: none", http.StatusBadRequest)
			return
		}
		last := req.Messages[len(req.Messages)-1].Content
		mu.Lock()
		asked = append(asked, last)
		mu.Unlock()
		text := "Moss."
		if strings.Contains(last, "Standalone question:") {
			text = "What is the signal code of the pier?"
		}
		event1(w, fmt.Sprintf(`{"choices":[{"delta":{"content":%q},"finish_reason":"stop"}]}`, text))
		event1(w, `{"choices":[],"usage":{"prompt_tokens":50,"completion_tokens":5}}`)
		event1(w, "[DONE]")
	})
	l := front(t, p.URL, "")
	res := l.asked(t, body{
		"question": "What is its code?", "collection": l.notes(t),
		"history": []body{{"role": "user", "content": "Which signal is used?"}, {"role": "assistant", "content": "The pier's."}},
	})
	if r := res.Usage.Rewrite; r == nil || r.Method != answer.RewriteModel || r.Query != "What is the signal code of the pier?" {
		t.Errorf("rewritten as %+v", r)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 2 || !strings.Contains(asked[0], "What is its code?") {
		t.Errorf("the server was asked %q", asked)
	}
}

func TestRemoteFailures(t *testing.T) {
	var say atomic.Pointer[func(w http.ResponseWriter, r *http.Request)]
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request) { (*say.Load())(w, r) })
	l := front(t, p.URL, "")
	ask := body{"question": "What is the signal code?", "collection": l.notes(t)}
	status := func(code int, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			http.Error(w, text, code)
		}
	}
	for name, c := range map[string]struct {
		say    func(http.ResponseWriter, *http.Request)
		status int
		code   answer.Code
	}{
		"error":     {status(500, "kaput secret"), 503, answer.Unavailable},
		"wrong key": {status(401, "who?"), 503, answer.Unavailable},
		"window":    {status(400, `{"error":{"code":"context_length_exceeded"}}`), 422, answer.OverBudget},
		"busy":      {status(429, "later"), 429, answer.Busy},
		"no JSON":   {func(w http.ResponseWriter, _ *http.Request) { event1(w, "nonsense") }, 503, answer.Unavailable},
		"cut off":   {func(w http.ResponseWriter, _ *http.Request) { event1(w, `{"choices":[{"delta":{"content":"It"}}]}`) }, 503, answer.Unavailable},
		"stalls":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, 504, answer.Timeout},
		"stalls later": {func(w http.ResponseWriter, r *http.Request) {
			event1(w, `{"choices":[{"delta":{"content":"It"}}]}`)
			<-r.Context().Done()
		}, 504, answer.Timeout},
	} {
		say.Store(&c.say)
		resp, err := l.post(t, t.Context(), "/ask", ask)
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Error struct {
				Code    answer.Code
				Message string
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&e); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status || e.Error.Code != c.code || strings.Contains(e.Error.Message, "secret") {
			t.Errorf("%s: %d %+v, want %d %s", name, resp.StatusCode, e.Error, c.status, c.code)
		}
		if name == "busy" && resp.Header.Get("Retry-After") != "7" {
			t.Errorf("Retry-After %q", resp.Header.Get("Retry-After"))
		}
	}
}

// TestRemoteCancel: a client that goes away ends the request behind, too.
func TestRemoteCancel(t *testing.T) {
	p := newPeer(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			event1(w, `{"choices":[{"delta":{"content":"and "}}]}`)
			time.Sleep(5 * time.Millisecond)
		}
	})
	l := front(t, p.URL, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := l.post(t, ctx, "/ask", body{"question": "What is the signal code?", "collection": l.notes(t), "stream": true})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan() && !strings.HasPrefix(lines.Text(), "event: delta"); {
		continue
	}
	cancel()
	select {
	case <-p.gone:
	case <-time.After(20 * time.Second):
		t.Fatal("the server behind still writes")
	}
}

// TestRagdBehindRagd: the chat route of one is the inference server of another, and
// with its tokenizer in front the estimate is close to what it counts.
func TestRagdBehindRagd(t *testing.T) {
	back := start(t, settings(t))
	cfg := settings(t)
	cfg.Inference.Remote.URL, cfg.Inference.Remote.Model = back.url+"/v1", back.models()[0].ID
	l := start(t, cfg)
	c := l.notes(t)
	res := l.asked(t, body{"question": "What is the signal code?", "collection": c, "answer_mode": "generate", "budget": body{"answer_tokens": 12}})
	if u := res.Usage; res.Answer == "" || u.Ledger.Input() != u.InputTokens || u.OutputTokens == 0 || u.OutputTokens > 12 {
		t.Errorf("%q %+v", res.Answer, u)
	}
	rows := back.log.rows("answered")
	if len(rows) != 1 || rows[0]["input_tokens"] != float64(res.Usage.InputTokens) || rows[0]["output_tokens"] != float64(res.Usage.OutputTokens) {
		t.Errorf("the one behind counted %v, the one in front %+v", rows, res.Usage)
	}
	got := l.complete(t, user(l.models()[0].ID, "Give a colour.").with(body{"response_format": body{"type": "json_object"}, "max_tokens": 100}))
	if text := got.Choices[0].Message.Content; got.Choices[0].FinishReason == "stop" && !json.Valid([]byte(text)) {
		t.Errorf("JSON through both: %q", text)
	}
}

// TestRemoteTokens: with the served model's tokenizer the prompt goes out as tokens,
// and the ledger is exact before the server has said a word.
func TestRemoteTokens(t *testing.T) {
	p := newPeer(t, nil)
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Prompt []int32 }
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/v1/completions" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		event1(w, `{"choices":[{"text":"Moss.","finish_reason":"stop"}]}`)
		event1(w, fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":2}}`, len(req.Prompt)))
		event1(w, "[DONE]")
	})
	l := front(t, p.URL, settings(t).Models.Answer)
	res := l.asked(t, body{"question": "What is the signal code?", "collection": l.notes(t)})
	if u := res.Usage; u.Ledger.Estimated || u.Ledger.Input() != u.InputTokens || u.InputTokens == 0 || res.Answer != "Moss." {
		t.Errorf("%q %+v", res.Answer, u)
	}
	l.refused(t, body{"question": "q", "response_format": body{"type": "json_object"}}, 400, "invalid")
}
