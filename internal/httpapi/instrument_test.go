package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"ragd/internal/answer"
	"ragd/telemetry"
)

// rootAsker begins and ends a root span of its own, as the question road does.
type rootAsker struct {
	fakeAsker
	tel     *telemetry.Telemetry
	baggage string
}

func (r *rootAsker) Ask(ctx context.Context, received time.Time, req answer.Request, sink answer.Sink) (*answer.Result, error) {
	r.baggage = baggage.FromContext(ctx).String()
	ctx, rec := r.tel.Begin(ctx, string(answer.RouteAsk), received)
	defer func() { rec.End(ctx, rec.Timings(time.Now()), telemetry.Summary{Outcome: telemetry.Answered}) }()
	return r.fakeAsker.Ask(ctx, received, req, sink)
}

// measuredServer is a server whose spans lie in memory.
func measuredServer(t *testing.T, trust bool) (string, *rootAsker, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tel, err := telemetry.New(t.Context(), telemetry.Config{SpanExporter: spans, TrustTraceparent: trust}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	asker := &rootAsker{tel: tel}
	srv := httptest.NewServer(New(Deps{
		Guard: guard(t),
		Asker: asker, Library: &fakeLibrary{}, Ingester: fakeIngester{}, Metrics: tel.Handler(), Latency: http.NotFoundHandler(), LatencyData: http.NotFoundHandler(),
		Ready: func(context.Context) error { return nil }, Log: slog.New(slog.DiscardHandler), Telemetry: tel,
	}, Config{MaxBodyBytes: 1 << 20, RequestTimeout: time.Minute}))
	t.Cleanup(srv.Close)
	return srv.URL, asker, spans
}

func get(t *testing.T, method, url string) string {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if err := resp.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const (
	callerTrace = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
)

// TestCallersTrace: a caller is linked to, and joined only when it is trusted.
func TestCallersTrace(t *testing.T) {
	for _, trust := range []bool{false, true} {
		for _, flags := range []string{"00", "01"} {
			url, asker, spans := measuredServer(t, trust)
			post(t, url+"/ask", `{"question":"q"}`, "traceparent", "00-"+callerTrace+"-"+callerSpan+"-"+flags, "baggage", "user=1")
			if trust && flags == "00" {
				if n := len(spans.GetSpans()); n != 0 {
					t.Errorf("the caller said not to sample, %d spans are there", n)
				}
				continue
			}
			if len(spans.GetSpans()) != 1 {
				t.Fatalf("trust %v: %d spans, want the root alone", trust, len(spans.GetSpans()))
			}
			s := spans.GetSpans()[0]
			joined := s.SpanContext.TraceID().String() == callerTrace && s.Parent.SpanID().String() == callerSpan
			linked := len(s.Links) == 1 && s.Links[0].SpanContext.TraceID().String() == callerTrace && s.Links[0].SpanContext.SpanID().String() == callerSpan
			if joined != trust || linked == trust || (asker.baggage != "") != trust {
				t.Errorf("trust %v: joined %v, linked %v, baggage %q", trust, joined, linked, asker.baggage)
			}
		}
	}
}

// TestServerSpans: the routes that begin no span of their own have one, once; probes
// and what matches no route have none.
func TestServerSpans(t *testing.T) {
	url, _, spans := measuredServer(t, false)
	for _, call := range []struct{ method, path, body, want string }{
		{"GET", "/v1/models", "", "GET /v1/models"},
		{"GET", "/v1/documents?collection=secret", "", "GET /v1/documents"},
		{"DELETE", "/v1/ingest/nothing", "", "DELETE /v1/ingest/:id"},
		{"POST", "/ask", `{"question":"q"}`, "POST /ask"},
		{"GET", "/healthz", "", ""},
		{"GET", "/readyz", "", ""},
		{"GET", "/metrics", "", ""},
		{"GET", "/debug/latency/app.js", "", ""},
		{"GET", "/no/such/route", "", ""},
	} {
		spans.Reset()
		if call.method == "POST" {
			post(t, url+call.path, call.body)
		} else {
			get(t, call.method, url+call.path)
		}
		var names []string
		for _, s := range spans.GetSpans() {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, ", "); got != call.want {
			t.Errorf("%s %s has the spans %q, want %q", call.method, call.path, got, call.want)
		}
	}
}

// TestServerMetric: every route is counted under its pattern, and nothing that a
// caller chooses becomes a label.
func TestServerMetric(t *testing.T) {
	url, _, _ := measuredServer(t, false)
	post(t, url+"/ask", `{"question":"q"}`)
	post(t, url+"/ask", `{}`)
	for _, odd := range []string{"/x1", "/x2", "/v1/ingest/a", "/v1/ingest/b"} {
		get(t, "DELETE", url+odd)
	}
	get(t, "BREW", url+"/ask")
	page := get(t, "GET", url+"/metrics")
	series := regexp.MustCompile(`(?m)^http_server_request_duration_seconds_count\{(.*)\} ([0-9]+)`).FindAllStringSubmatch(page, -1)
	counts := map[string]string{}
	label := func(labels, name string) string {
		m := regexp.MustCompile(`(?:^|,)` + name + `="([^"]*)"`).FindStringSubmatch(labels)
		if m == nil {
			return ""
		}
		return m[1]
	}
	for _, s := range series {
		counts[label(s[1], "http_request_method")+" "+label(s[1], "http_route")+" "+label(s[1], "http_response_status_code")] = s[2]
		for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(s[1], -1) {
			if !strings.Contains(" http_request_method http_route http_response_status_code network_protocol_name network_protocol_version server_address server_port url_scheme error_type ", " "+l[1]+" ") {
				t.Errorf("label %s in %s", l[1], s[0])
			}
		}
		if server := label(s[1], "server_address"); server != "ragd" {
			t.Errorf("the server is %q, which is what the caller calls it", server)
		}
	}
	for want, n := range map[string]string{
		"POST /ask 200": "1", "POST /ask 400": "1", "DELETE  404": "2", "DELETE /v1/ingest/:id 404": "2", "_OTHER  405": "1",
	} {
		if counts[want] != n {
			t.Errorf("%q counts %q, want %s: %v", want, counts[want], n, counts)
		}
	}
	if !strings.Contains(page, `http_server_request_duration_seconds_bucket{`) || !strings.Contains(page, `le="160"`) {
		t.Error("the buckets end before streams do")
	}
	if strings.Contains(page, "body_size") {
		t.Error("sizes of bodies are counted, which nobody asked for")
	}
}
