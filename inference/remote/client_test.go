package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/sample"
)

// dial starts a server that answers with handler and a client for it.
func dial(t *testing.T, cfg Config, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	cfg.HTTP = server.Client()
	c, err := New(server.URL+"/v1/", "served-model", enginetest.Tokenizer{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// says is a server that sends lines as events.
func says(lines ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, line := range lines {
			fmt.Fprintf(w, "data: %s\n\n", line)
			w.(http.Flusher).Flush()
		}
	}
}

func request() engine.Request {
	return engine.Request{Tokens: []int32{256, 104, 105}, MaxTokens: 20}
}

// read is a stream's text and its last event.
func read(t *testing.T, s *engine.Stream) (text string, last engine.Event) {
	t.Helper()
	for {
		event, err := s.Next(context.WithoutCancel(t.Context()))
		if errors.Is(err, io.EOF) {
			return text, last
		}
		if err != nil {
			t.Fatal(err)
		}
		if delta, ok := event.(engine.Delta); ok {
			text += delta.Text
		}
		last = event
	}
}

func ask(t *testing.T, c *Client, r engine.Request) (string, engine.Event) {
	t.Helper()
	s, err := c.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return read(t, s)
}

const usageLine = `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":2}}}`

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		lines  []string
		text   string
		reason engine.Reason
		usage  engine.Usage
		sure   engine.Confidence
	}{
		{
			"with the server's count",
			[]string{
				`{"choices":[{"text":"Hel","finish_reason":null,"logprobs":{"token_logprobs":[-0.5,-1.5]}}]}`,
				`{"choices":[{"text":"lo","finish_reason":"stop","stop_reason":null,"logprobs":null}]}`,
				usageLine, `[DONE]`,
			},
			"Hello", engine.ReasonStop,
			engine.Usage{InputTokens: 3, OutputTokens: 4, CachedTokens: 2},
			engine.Confidence{Mean: -1, Min: -1.5, Tokens: 2},
		},
		{
			"counted here, a token a byte",
			[]string{`{"choices":[{"text":"값","finish_reason":"length"}]}`, `[DONE]`},
			"값", engine.ReasonLength,
			engine.Usage{InputTokens: 3, OutputTokens: 3},
			engine.Confidence{},
		},
		{
			"a stop text, probabilities in the other form",
			[]string{`{"choices":[{"text":"a","finish_reason":"stop","stop_reason":"\n","logprobs":{"content":[{"logprob":-2}]}}]}`, `[DONE]`},
			"a", engine.ReasonStopString,
			engine.Usage{InputTokens: 3, OutputTokens: 1},
			engine.Confidence{Mean: -2, Min: -2, Tokens: 1},
		},
		{
			"nothing",
			[]string{`{"choices":[{"text":"","finish_reason":"stop"}]}`, `[DONE]`},
			"", engine.ReasonStop,
			engine.Usage{InputTokens: 3},
			engine.Confidence{},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, last := ask(t, dial(t, Config{}, says(c.lines...)), request())
			done, ok := last.(engine.Done)
			if !ok {
				t.Fatalf("%T %+v, want Done", last, last)
			}
			if text != c.text || done.Reason != c.reason || done.Usage != c.usage || done.Confidence != c.sure {
				t.Errorf("%q %+v, want %q %s %+v %+v", text, done, c.text, c.reason, c.usage, c.sure)
			}
		})
	}
}

func TestWhatIsSent(t *testing.T) {
	var got map[string]any
	var header http.Header
	var path string
	c := dial(t, Config{Key: "secret"}, func(w http.ResponseWriter, r *http.Request) {
		path, header = r.URL.Path, r.Header
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		says(`{"choices":[{"text":"x","finish_reason":"stop"}]}`, `[DONE]`)(w, r)
	})
	r := request()
	r.Stop = []string{"END"}
	r.Sampling = sample.Params{Temperature: 0.5, TopK: 7, Seed: 1<<40 + 9}
	ask(t, c, r)
	want := map[string]any{
		"model": "served-model", "prompt": []any{256.0, 104.0, 105.0}, "max_tokens": 20.0,
		"temperature": 0.5, "top_k": 7.0, "seed": 9.0, "stop": []any{"END"}, "logprobs": 1.0,
		"stream": true, "stream_options": map[string]any{"include_usage": true},
	}
	if a, b := fmt.Sprint(got), fmt.Sprint(want); a != b {
		t.Errorf("sent\n%s\nwant\n%s", a, b)
	}
	if path != "/v1/completions" || header.Get("Authorization") != "Bearer secret" {
		t.Errorf("to %s with %v", path, header)
	}
}

func TestFailures(t *testing.T) {
	status := func(code int, header, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(code)
			io.WriteString(w, text)
		}
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"a refusal", status(400, "", "no such model"), "status 400: no such model"},
		{"too busy", status(429, "7", ""), "queue is full"},
		{"broken off", says(`{"choices":[{"text":"a"}]}`), "broke off: unexpected EOF"},
		{"no reason", says(`{"choices":[{"text":"a"}]}`, `[DONE]`), "without a finish_reason"},
		{"an unknown reason", says(`{"choices":[{"text":"a","finish_reason":"tired"}]}`), `ended with "tired"`},
		{"an error inside", says(`{"error":{"message":"out of memory"}}`), "out of memory"},
		{"no JSON", says(`{"choices":`), "no JSON"},
		{"another tokenizer", says(
			`{"choices":[{"text":"a","finish_reason":"stop"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, `[DONE]`), "counted 9 prompt tokens where 3 were sent"},
		{"a flood", says(`{"choices":[{"text":"` + strings.Repeat("x", 30_000) + `"}]}`), "longer than 21504 bytes"},
		{"an endless line", says(strings.Repeat("x", maxLine+1)), "token too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, last := ask(t, dial(t, Config{}, c.handler), request())
			failed, ok := last.(engine.Failed)
			if !ok || !strings.Contains(failed.Err.Error(), c.want) {
				t.Errorf("%T %+v, want an error with %q", last, last, c.want)
			}
		})
	}
	_, last := ask(t, dial(t, Config{}, status(429, "7", "")), request())
	var full *engine.QueueFullError
	if !errors.As(last.(engine.Failed).Err, &full) || full.Wait != 7*time.Second {
		t.Errorf("%+v, want a wait of 7 s", last)
	}
}

// hangs is a server that says a word and then waits for its client to leave.
func hangs(left chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		says(`{"choices":[{"text":"word"}]}`)(w, r)
		<-r.Context().Done()
		left <- struct{}{}
	}
}

func TestCancel(t *testing.T) {
	for name, cancel := range map[string]func(context.CancelFunc, *engine.Stream){
		"context ends":  func(end context.CancelFunc, _ *engine.Stream) { end() },
		"stream closed": func(_ context.CancelFunc, s *engine.Stream) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			left := make(chan struct{}, 1)
			c := dial(t, Config{}, hangs(left))
			ctx, end := context.WithCancel(t.Context())
			defer end()
			s, err := c.Submit(ctx, request())
			if err != nil {
				t.Fatal(err)
			}
			for {
				event, err := s.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := event.(engine.Delta); ok {
					break
				}
			}
			cancel(end, s)
			_, last := read(t, s)
			done, ok := last.(engine.Done)
			if !ok || done.Reason != engine.ReasonCancelled || done.Usage.OutputTokens != len("word") {
				t.Errorf("%T %+v, want cancelled after 4 tokens", last, last)
			}
			<-left // The server is told.
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCloseCutsShort(t *testing.T) {
	c := dial(t, Config{MaxRequests: 1}, hangs(make(chan struct{}, 1)))
	s, err := c.Submit(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(t.Context(), request()); !errors.Is(err, engine.ErrQueueFull) {
		t.Errorf("a second of one: %v, want ErrQueueFull", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("close: %v, want the end of its context", err)
	}
	if _, last := read(t, s); last.(engine.Done).Reason != engine.ReasonCancelled {
		t.Errorf("%+v, want cancelled", last)
	}
	if _, err := c.Submit(t.Context(), request()); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after close: %v, want ErrClosed", err)
	}
}

func TestRefusals(t *testing.T) {
	c := dial(t, Config{Window: 10}, says(`[DONE]`))
	hot := request()
	hot.Sampling.Temperature = -1
	for name, r := range map[string]engine.Request{
		"no prompt": {MaxTokens: 1}, "no answer": {Tokens: []int32{1}}, "temperature": hot,
	} {
		if _, err := c.Submit(t.Context(), r); !errors.Is(err, engine.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	var long *engine.TooLongError
	if _, err := c.Submit(t.Context(), request()); !errors.As(err, &long) || long.Tokens != 23 || long.Window != 10 {
		t.Errorf("23 tokens: %v, want TooLongError", err)
	}
	most := request()
	most.MaxTokens = math.MaxInt
	if _, err := c.Submit(t.Context(), most); !errors.As(err, &long) || long.Tokens < 10 {
		t.Errorf("as many tokens as can be: %v, want TooLongError", err)
	}
	for _, base := range []string{"", "localhost:80", "ftp://host/v1", "http://"} {
		if _, err := New(base, "m", enginetest.Tokenizer{}, Config{}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", base)) {
			t.Errorf("address %q: %v, want an error that names it", base, err)
		}
	}
}

// An answer that ended holds no place, even where the server does not end its own.
func TestPlacesAreFreeAtTheEnd(t *testing.T) {
	c := dial(t, Config{MaxRequests: 1}, func(w http.ResponseWriter, r *http.Request) {
		says(`{"choices":[{"text":"a","finish_reason":"stop"}]}`, `[DONE]`)(w, r)
		<-r.Context().Done()
	})
	for range 20 {
		if text, last := ask(t, c, request()); text != "a" {
			t.Fatalf("%q, %+v", text, last)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// One answer after another takes one connection.
func TestConnectionsAreKept(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(says(`{"choices":[{"text":"a","finish_reason":"stop"}]}`, `[DONE]`))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c, err := New(server.URL, "served-model", enginetest.Tokenizer{}, Config{HTTP: server.Client(), MaxRequests: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if text, last := ask(t, c, request()); text != "a" {
			t.Fatalf("%q, %+v", text, last)
		}
		c.wg.Wait() // until the connection is back
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections were opened", n)
	}
}

// Whatever a server sends, an answer ends and stays within its bounds.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: " + usageLine + "\n\ndata: [DONE]\n"))
	f.Add([]byte(`data: {"choices":[{"text":"a","finish_reason":"stop","stop_reason":"x","logprobs":{"token_logprobs":[null]}}]}` + "\ndata: [DONE]"))
	f.Add([]byte(": comment\nevent: x\ndata:{}\r\n"))
	f.Add([]byte("data: {\"error\":{\"message\":\"no\"}}"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		feed := engine.NewFeed(nil)
		a := &answer{feed: feed, count: func(s string) int { return len(s) }, prompt: 3, limit: 100, leave: func() {}}
		a.run(t.Context(), func() (*http.Response, error) {
			return &http.Response{Body: io.NopCloser(strings.NewReader(string(stream)))}, nil
		})
		text, last := read(t, feed.Stream())
		if len(text) > a.limit {
			t.Errorf("%d bytes of text, the limit is %d", len(text), a.limit)
		}
		switch last.(type) {
		case engine.Done, engine.Failed:
		default:
			t.Errorf("the last event is %T", last)
		}
	})
}

// TestServer: the host and port that are called, also where the address leaves the
// port to its scheme.
func TestServer(t *testing.T) {
	for address, want := range map[string]struct {
		host string
		port int
	}{
		"http://127.0.0.1:8000/v1":     {"127.0.0.1", 8000},
		"http://models.example/v1":     {"models.example", 80},
		"https://models.example/v1":    {"models.example", 443},
		"https://[2001:db8::1]:444/v1": {"2001:db8::1", 444},
	} {
		c, err := New(address, "m", nil, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if host, port := c.Server(); host != want.host || port != want.port {
			t.Errorf("%s is at %s, %d", address, host, port)
		}
	}
	if _, err := New("http://models.example:70000/v1", "m", nil, Config{}); err == nil {
		t.Error("port 70000 was taken")
	}
}
