package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"ragd/internal/answer"
)

// testExactLimits: the tokens of question, template and answer together may fill
// the window to the last one; one more is refused, and the error says so.
func testExactLimits(t *testing.T, l *live) {
	c := l.notes(t)
	window := l.ask.Generator.Model().Window
	ask := func(tokens int) body {
		return body{"question": "Which lamp is violet?", "collection": c, "answer_mode": "extract", "budget": body{"answer_tokens": tokens}}
	}
	fits, over := 1, window
	for fits+1 < over {
		mid := (fits + over) / 2
		if status, _ := l.call(t, "/ask", ask(mid)); status == http.StatusOK {
			fits = mid
		} else {
			over = mid
		}
	}
	for _, tokens := range []int{fits - 1, fits} {
		l.asked(t, ask(tokens))
	}
	_, message := l.refused(t, ask(over), 422, "over_budget")
	if want := fmt.Sprintf("need %d tokens, the window has %d: 1 too many", window+1, window); !strings.Contains(message, want) {
		t.Errorf("one token over: %q does not say %q", message, want)
	}
	// What is in the prompt besides is what generating from it needs, too.
	full := ask(1).with(body{"answer_mode": "generate"})
	input := l.asked(t, full).Usage.InputTokens
	if rest := window - input; rest > fits {
		t.Errorf("an answer of %d tokens fits beside a prompt of %d, yet only %d were let through", rest, input, fits)
	}
}

// testLongQuestions: a question over the embedder's limit is searched with all
// of it, one far over it with its ends; the answer's model sees it whole.
func testLongQuestions(t *testing.T, l *live) {
	c := l.notes(t)
	question := strings.Repeat("Please read this carefully. ", 150) + "Which lamp is violet?"
	if n := l.embed.CountPassage(question); n <= l.embed.MaxTokens() {
		t.Fatalf("the question has only %d tokens", n)
	}
	res := l.asked(t, body{"question": question, "collection": c, "answer_mode": "generate", "budget": body{"answer_tokens": 1}})
	want := len(l.ask.Tokenizer.Encode(nil, question))
	if got := res.Usage.Ledger.Question; got != want {
		t.Errorf("the question is %d tokens in the ledger, %d in itself", got, want)
	}
	checkTokens(t, res)
	if res.Usage.UnreadTokens != 0 {
		t.Errorf("%d tokens are said not to be read", res.Usage.UnreadTokens)
	}
	for query, unread := range map[string]bool{question: false, strings.Repeat(question, 10): true} {
		status, data := l.call(t, "/v1/search", body{"query": query, "collection": c})
		if status != 200 || strings.Contains(data, `"unread_tokens":`) != unread || !strings.Contains(data, "violet") {
			t.Errorf("a query of %d bytes: %d %.300s", len(query), status, data)
		}
	}
	long := strings.Repeat("word ", l.ask.Generator.Model().Window+8)
	if len(long) > answer.MaxQuestionBytes {
		t.Fatalf("%d bytes are refused for another reason", len(long))
	}
	if _, message := l.refused(t, body{"question": long, "collection": c}, 422, "over_budget"); !strings.Contains(message, "too many") {
		t.Errorf("over the window: %q", message)
	}
}

// story is a request that takes longer than any test waits: so hot that the
// token that would end it is one of fifty thousand alike.
func story(collection string) body {
	return body{
		"question": "Which lamp is violet? Tell it at length.", "collection": collection, "answer_mode": "generate",
		"budget": body{"answer_tokens": 2000}, "sampling": body{"temperature": 10, "seed": 7},
	}
}

// TestBusyTimeoutShutdown takes one app to its limits: a full queue, a request
// over its time, a stream that runs while the server stops.
func TestBusyTimeoutShutdown(t *testing.T) {
	cfg := settings(t)
	cfg.Inference.MaxRunning, cfg.Inference.MaxQueue = 1, 1
	l := start(t, cfg)
	c := l.notes(t)

	t.Run("busy", func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		for range 2 { // one runs, one waits
			go func() {
				if resp, err := l.post(t, ctx, "/ask", story(c)); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}()
		}
		eventually(t, func() bool { s := l.gen.stats(); return s.Running == 1 && s.Queued == 1 })
		resp, err := l.post(t, t.Context(), "/ask", story(c))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); resp.StatusCode != http.StatusTooManyRequests || err != nil || seconds < 1 {
			t.Errorf("%s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
		}
		if _, message := l.refused(t, story(c).with(body{"stream": true}), 429, "busy"); !strings.Contains(message, "queue") {
			t.Errorf("busy says %q", message)
		}
		leave()
		eventually(t, func() bool { s := l.gen.stats(); return s.Running == 0 && s.Queued == 0 })
	})
	t.Run("timeout", func(t *testing.T) {
		l.cfg.Server.RequestTimeout = 2 * time.Second
		impatient := httptest.NewServer(l.Handler())
		defer impatient.Close()
		l.url = impatient.URL
		l.refused(t, story(c), 504, "timeout")
		if running := l.gen.stats().Running; running != 0 {
			t.Errorf("%d requests still run", running)
		}
		if rows := l.log.rows("timeout"); len(rows) != 1 || rows[0]["error"] != "timeout" {
			t.Errorf("log rows %v", rows)
		}
	})
}

// TestShutdownDuringAStream: a running answer may finish, then the server ends.
func TestShutdownDuringAStream(t *testing.T) {
	l := start(t, settings(t))
	c := l.notes(t)
	cfg := l.cfg
	cfg.Server.Addr = "127.0.0.1:0"
	listener, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.url = "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx, listener) }()
	resp, err := l.post(t, t.Context(), "/ask", story(c).with(body{"stream": true, "budget": body{"answer_tokens": 40}}))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	stop()
	data, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(data), "event: done\n") {
		t.Errorf("the stream ended with %v after %.300s", err, data)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if resp, err := l.post(t, t.Context(), "/ask", story(c)); err == nil {
		resp.Body.Close()
		t.Error("the server still answers")
	}
}

// eventually waits for something that comes true in an instant; a loaded machine
// gets more.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Error("it did not come true in time")
}
