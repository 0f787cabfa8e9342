package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/answer"
	"ragd/internal/keys"
)

// fakeAsker answers with fixed text, or fails before or after its first event.
type fakeAsker struct {
	err   error
	late  bool
	panic bool
	got   answer.Request

	chat   answer.ChatRequest
	embed  answer.EmbedRequest
	rerank answer.RerankRequest
}

func (f *fakeAsker) Ask(_ context.Context, _ time.Time, req answer.Request, sink answer.Sink) (*answer.Result, error) {
	f.got = req
	if f.panic {
		panic("deliberate")
	}
	res := &answer.Result{ID: "ask_1", TraceID: "trace-1", Answer: "가나다 <b>", Citations: []answer.Citation{}}
	if f.err != nil && !f.late {
		return res, f.err
	}
	sink.Begun(res.TraceID)
	sink.Queued(1)
	sink.Sources(answer.Sources{})
	sink.Delta("가나다 ")
	if f.err != nil {
		return res, f.err
	}
	sink.Delta("<b>")
	sink.Citation(answer.Citation{Marker: 1})
	return res, nil
}

func (f *fakeAsker) Search(_ context.Context, req answer.SearchRequest) (*answer.SearchResult, error) {
	return &answer.SearchResult{TraceID: "t", Results: []answer.Candidate{}}, f.err
}

func (f *fakeAsker) Reject(context.Context, answer.Route, time.Time, error) string {
	return "trace-rejected"
}

func (f *fakeAsker) Chat(_ context.Context, _ time.Time, req answer.ChatRequest, sink answer.Sink) (*answer.ChatResult, error) {
	f.chat = req
	res := &answer.ChatResult{ID: "chatcmpl-1", TraceID: "trace-1", Model: "small", Text: "가나다 <b>", FinishReason: "stop_string"}
	res.Usage = answer.Usage{InputTokens: 7, OutputTokens: 3, CachedTokens: 2}
	if f.err != nil && !f.late {
		return res, f.err
	}
	sink.Begun(res.TraceID)
	sink.Queued(1)
	sink.Delta("가나다 ")
	if f.err != nil {
		return res, f.err
	}
	sink.Delta("<b>")
	return res, nil
}

func (f *fakeAsker) Embed(_ context.Context, _ time.Time, req answer.EmbedRequest) (*answer.EmbedResult, error) {
	f.embed = req
	res := &answer.EmbedResult{TraceID: "trace-1", Tokens: 5}
	for range req.Texts {
		res.Vectors = append(res.Vectors, []float32{1, -0.5})
	}
	return res, f.err
}

func (f *fakeAsker) Rerank(_ context.Context, _ time.Time, req answer.RerankRequest) (*answer.RerankResult, error) {
	f.rerank = req
	res := &answer.RerankResult{ID: "rerank_1", TraceID: "trace-1", Model: "scorer", Tokens: 9}
	for i := range req.Texts {
		res.Results = append([]answer.RankedText{{Index: i, Score: float32(i)}}, res.Results...)
	}
	return res, f.err
}

type fakeLibrary struct{ deleted []string }

func (l *fakeLibrary) Documents(_ context.Context, collection string) ([]store.DocumentInfo, error) {
	if collection == "nowhere" || collection == "" {
		return nil, fmt.Errorf("list: %w", &ingest.NoCollectionError{Name: collection})
	}
	return []store.DocumentInfo{{Path: "a.md"}}, nil
}

func (l *fakeLibrary) Collections(context.Context) ([]store.CollectionInfo, error) { return nil, nil }

func (l *fakeLibrary) Delete(_ context.Context, _ string, paths []string) (int, error) {
	l.deleted = paths
	return len(paths), nil
}

// fakeIngester settles one of two documents; with block it then waits to be stopped.
type fakeIngester struct {
	err   error
	block bool
}

func (f fakeIngester) Ingest(ctx context.Context, _ IngestRequest, progress func(ingest.Progress)) (ingest.Report, error) {
	progress(ingest.Progress{Documents: 1, Total: 2})
	if f.block {
		<-ctx.Done()
		return ingest.Report{Found: 2, Indexed: 1, Remaining: 1, Interrupted: true}, ctx.Err()
	}
	return ingest.Report{Found: 2, Indexed: 2}, f.err
}

// guard knows the operator's keys alone.
func guard(t *testing.T, hashes ...string) Guard {
	t.Helper()
	g, err := keys.NewGuard(nil, hashes)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newServer(t *testing.T, asker *fakeAsker, hashes ...string) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(New(Deps{
		Guard: guard(t, hashes...), Asker: asker, Library: &fakeLibrary{}, Ingester: fakeIngester{}, Metrics: http.NotFoundHandler(),
		Ready: func(context.Context) error { return nil }, Log: slog.New(slog.DiscardHandler),
		Models: []Model{{ID: "small", Role: RoleAnswers}, {ID: "e5", Role: RoleEmbeddings}, {ID: "scorer", Role: RoleRerank}},
	}, Config{Dimensions: 2, MaxBodyBytes: 1 << 20, RequestTimeout: time.Minute}))
	t.Cleanup(srv.Close)
	return srv
}

func post(t *testing.T, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
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
	return resp, string(data)
}

func TestAskJSON(t *testing.T) {
	resp, body := post(t, newServer(t, &fakeAsker{}).URL+"/ask", `{"question":"왜?"}`)
	var res answer.Result
	if err := json.Unmarshal([]byte(body), &res); err != nil || resp.StatusCode != 200 || res.Answer != "가나다 <b>" {
		t.Errorf("%d %s (%v)", resp.StatusCode, body, err)
	}
	if resp.Header.Get("X-Trace-Id") != "trace-1" {
		t.Errorf("headers %v", resp.Header)
	}
}

func TestBadBodies(t *testing.T) {
	srv := newServer(t, &fakeAsker{})
	for name, c := range map[string]struct {
		body   string
		status int
		field  string
	}{
		"unknown field":    {`{"question":"q","qestion":1}`, 400, "qestion"},
		"unknown nested":   {`{"question":"q","budget":{"tokens":1}}`, 400, "tokens"},
		"wrong type":       {`{"question":7}`, 400, "question"},
		"fraction":         {`{"question":"q","top_k":1.5}`, 400, "top_k"},
		"string number":    {`{"question":"q","top_k":"5"}`, 400, "top_k"},
		"boolean":          {`{"question":"q","top_k":true}`, 400, "top_k"},
		"list":             {`{"question":"q","top_k":[1]}`, 400, "top_k"},
		"beyond 64 bits":   {`{"question":"q","top_k":99999999999999999999}`, 400, "top_k"},
		"zero":             {`{"question":"q","top_k":0}`, 400, "top_k"},
		"nested type":      {`{"question":"q","sampling":{"temperature":"hot"}}`, 400, "sampling.temperature"},
		"empty question":   {`{"question":""}`, 400, "question"},
		"cut off":          {`{"question":"q`, 400, ""},
		"not a number":     {`{"question":"q","sampling":{"temperature":NaN}}`, 400, ""},
		"two values":       {`{"question":"q"} {"question":"q"}`, 400, ""},
		"empty":            {``, 400, ""},
		"list for object":  {`[]`, 400, ""},
		"invalid UTF-8":    {"{\"question\":\"\xff\"}", 400, ""},
		"question too big": {`{"question":"` + strings.Repeat("x", 100<<10) + `"}`, 413, "question"},
		"body too big":     {`{"question":"` + strings.Repeat("x", 2<<20) + `"}`, 413, ""},
	} {
		for _, stream := range []bool{false, true} {
			body := c.body
			if stream {
				body = strings.Replace(body, "{", `{"stream":true,`, 1)
			}
			resp, data := post(t, srv.URL+"/ask", body)
			var e errorBody
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Errorf("%s: %s is not the error shape", name, data)
				continue
			}
			if resp.StatusCode != c.status || e.Error.Field != c.field || e.Error.TraceID != "trace-rejected" {
				t.Errorf("%s: %d %+v, want %d for field %q", name, resp.StatusCode, e.Error, c.status, c.field)
			}
			if !strings.Contains(e.Error.Message, c.field) {
				t.Errorf("%s: message %q does not name %q", name, e.Error.Message, c.field)
			}
		}
	}
}

func TestLoneSurrogateBecomesTheReplacementCharacter(t *testing.T) {
	asker := &fakeAsker{}
	resp, body := post(t, newServer(t, asker).URL+"/ask", `{"question":"a\ud800b"}`)
	if resp.StatusCode != 200 || asker.got.Question != "a\uFFFDb" {
		t.Errorf("%d %s, question %q", resp.StatusCode, body, asker.got.Question)
	}
}

func TestStatuses(t *testing.T) {
	for code, want := range map[answer.Code]int{
		answer.NotFound: 404, answer.OverBudget: 422, answer.Busy: 429, answer.Unavailable: 503, answer.Timeout: 504, answer.Internal: 500,
	} {
		asker := &fakeAsker{err: &answer.Error{Code: code, Message: "said", RetryAfter: 1500 * time.Millisecond, Err: errors.New("secret detail")}}
		for _, body := range []string{`{"question":"q"}`, `{"question":"q","stream":true}`} {
			resp, data := post(t, newServer(t, asker).URL+"/ask", body)
			if resp.StatusCode != want || strings.Contains(data, "secret") || !strings.Contains(data, `"trace_id":"trace-1"`) {
				t.Errorf("%s: %d %s", code, resp.StatusCode, data)
			}
			if resp.Header.Get("Retry-After") != "2" {
				t.Errorf("Retry-After %q", resp.Header.Get("Retry-After"))
			}
		}
	}
	for code := range statuses {
		if statuses[code] < 400 {
			t.Errorf("%s is %d", code, statuses[code])
		}
	}
}

func TestEventStream(t *testing.T) {
	resp, body := post(t, newServer(t, &fakeAsker{}).URL+"/ask", `{"question":"q","stream":true}`)
	if id := resp.Header.Get("X-Trace-Id"); id != "trace-1" {
		t.Errorf("X-Trace-Id %q", id)
	}
	if ct := resp.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
		t.Errorf("content type %s", ct)
	}
	var events []string
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			events = append(events, name)
		}
	}
	if got := strings.Join(events, " "); got != "queued sources delta delta citation done" {
		t.Errorf("events %s", got)
	}
}

func TestLateErrorIsAnEvent(t *testing.T) {
	asker := &fakeAsker{late: true, err: &answer.Error{Code: answer.Internal, Message: "internal error", Err: errors.New("secret")}}
	resp, body := post(t, newServer(t, asker).URL+"/ask", `{"question":"q","stream":true}`)
	if resp.StatusCode != 200 || !strings.Contains(body, "event: error\ndata: {\"error\":{\"code\":\"internal\"") || strings.Contains(body, "secret") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestPanicIsAnError(t *testing.T) {
	resp, body := post(t, newServer(t, &fakeAsker{panic: true}).URL+"/ask", `{"question":"q"}`)
	if resp.StatusCode != 500 || strings.Contains(body, "deliberate") || !strings.Contains(body, `"code":"internal"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestKeys(t *testing.T) {
	// SHA-256 of "open sesame".
	srv := newServer(t, &fakeAsker{}, "41ef4bb0b23661e66301aac36066912dac037827b4ae63a7b1165a5aa93ed4eb")
	for header, want := range map[string]int{"": 401, "Bearer nope": 401, "Basic open sesame": 401, "Bearer open sesame": 200} {
		resp, _ := post(t, srv.URL+"/ask", `{"question":"q"}`, "Authorization", header)
		if resp.StatusCode != want {
			t.Errorf("%q: %d, want %d", header, resp.StatusCode, want)
		}
	}
	if resp, err := http.Get(srv.URL + "/healthz"); err != nil || resp.StatusCode != 200 {
		t.Errorf("healthz needs no key: %v %v", resp, err)
	}
}

func TestOtherRoutes(t *testing.T) {
	srv := newServer(t, &fakeAsker{})
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/healthz", "", 200, "alive"},
		{"GET", "/readyz", "", 200, "ready"},
		{"GET", "/v1/documents", "", 200, `"path":"a.md"`},
		{"GET", "/v1/models", "", 200, `"object":"list"`},
		{"GET", "/v1/documents?collection=", "", 200, `"path":"a.md"`},
		{"GET", "/v1/documents?collection=nowhere", "", 404, `there is no collection \"nowhere\"`},
		{"POST", "/ask", `{"question":"q","collections":[]}`, 400, `"field":"collections"`},
		{"POST", "/ask", `{"question":"q","collections":"a"}`, 400, `"field":"collections"`},
		{"POST", "/ask", `{"question":"q","collection":"a","collections":["b"]}`, 400, `"field":"collections"`},
		{"POST", "/ask", `{"question":"q","collections":["a","b"]}`, 200, `"answer"`},
		{"DELETE", "/v1/documents", `{"paths":["a.md"]}`, 200, `"deleted":1`},
		{"DELETE", "/v1/documents", `{"paths":[]}`, 400, "paths"},
		{"POST", "/v1/search", `{"query":"q"}`, 200, `"results":[]`},
		{"POST", "/v1/ingest", `{"paths":["/x"]}`, 200, `"report"`},
		{"POST", "/v1/ingest", `{}`, 400, "paths"},
		{"POST", "/v1/ingest", `{"paths":["x/y"]}`, 400, "paths[0]"},
		{"POST", "/v1/ingest", `{"paths":["/x","/y\u0000"]}`, 400, "paths[1]"},
		{"POST", "/v1/ingest", `{"paths":["/x"],"collection":"\u0000"}`, 400, "collection"},
		{"DELETE", "/v1/documents", `{"paths":["a\u0000"]}`, 400, "paths[0]"},
		{"DELETE", "/v1/documents", `{"paths":["a"],"collection":"\u0000"}`, 400, "collection"},
		{"GET", "/v1/documents?collection=%00", "", 400, "collection"},
		{"GET", "/v1/documents?collection=%ff", "", 400, "UTF-8"},
		{"GET", "/v1/documents?collection=" + strings.Repeat("x", 257), "", 400, "256"},
		{"POST", "/ask", `{"question":"q","filters":{"metadata":{"a":5}}}`, 400, `"field":"filters.metadata"`},
		{"DELETE", "/v1/ingest/nothing", "", 404, "no such ingest"},
		{"GET", "/nothing", "", 404, "not_found"},
		{"GET", "/ask", "", 405, "method_not_allowed"},
	} {
		req, err := http.NewRequest(c.method, srv.URL+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || !strings.Contains(string(data), c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, data)
		}
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:8080": true, "localhost:1": true, "[::1]:1": true, "0.0.0.0:1": false, ":8080": false, "10.0.0.1:1": false, "nonsense": false,
	} {
		if Loopback(addr) != want {
			t.Errorf("%s: %v", addr, !want)
		}
	}
}
