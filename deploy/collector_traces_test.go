//go:build collector

package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// record is a finished request as the latency page has it, whose figures are the
// body's.
type record struct {
	TraceID string             `json:"trace_id"`
	Outcome string             `json:"outcome"`
	Route   string             `json:"route"`
	Model   string             `json:"model"`
	Timings map[string]float64 `json:"timings"`
}

func (s *stack) records(t *testing.T) map[string]record {
	t.Helper()
	var page struct{ Records []record }
	getJSON(t, s.ragd+"/debug/latency/data", &page)
	out := map[string]record{}
	for _, r := range page.Records {
		out[r.TraceID] = r
	}
	return out
}

// jspan is a span as Jaeger's HTTP interface has it; times are microseconds.
type jspan struct {
	SpanID        string `json:"spanID"`
	OperationName string `json:"operationName"`
	StartTime     int64  `json:"startTime"`
	Duration      int64  `json:"duration"`
	ProcessID     string `json:"processID"`
	service       string
	Tags          []struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	} `json:"tags"`
	References []struct {
		RefType string `json:"refType"`
		SpanID  string `json:"spanID"`
		TraceID string `json:"traceID"`
	} `json:"references"`
}

// trace reads a trace back once its root has come, and that of each service.
func (s *stack) trace(t *testing.T, id string, services ...string) []jspan {
	t.Helper()
	var spans []jspan
	until(t, 30*time.Second, "trace "+id, func() bool {
		data, err := httpGet(s.jaeger + "/api/traces/" + id)
		if err != nil {
			return false
		}
		var found struct {
			Data []struct {
				Spans     []jspan
				Processes map[string]struct{ ServiceName string }
			}
		}
		if json.Unmarshal(data, &found) != nil || len(found.Data) != 1 {
			return false
		}
		spans = found.Data[0].Spans
		for i := range spans {
			spans[i].service = found.Data[0].Processes[spans[i].ProcessID].ServiceName
		}
		for _, name := range services {
			// A root is its service's last span, so that all are there with it.
			if !slices.ContainsFunc(spans, func(j jspan) bool { return j.service == name && strings.HasPrefix(j.OperationName, "POST ") }) {
				return false
			}
		}
		return slices.ContainsFunc(spans, func(j jspan) bool { return j.parent() == "" })
	})
	return spans
}

func (j jspan) parent() string {
	for _, r := range j.References {
		if r.RefType == "CHILD_OF" {
			return r.SpanID
		}
	}
	return ""
}

// tag is an attribute as text, or empty.
func (j jspan) tag(key string) string {
	for _, t := range j.Tags {
		if t.Key == key {
			return fmt.Sprint(t.Value)
		}
	}
	return ""
}

// checkCall: a service's call to its model is a client's with the address of the server,
// or internal where address is empty.
func checkCall(t *testing.T, spans []jspan, service, address string) {
	t.Helper()
	kind, host, port := "internal", "", ""
	if address != "" {
		kind = "client"
		host, port, _ = strings.Cut(strings.TrimPrefix(address, "http://"), ":")
	}
	for _, j := range spans {
		if j.service == service && strings.HasPrefix(j.OperationName, "chat ") &&
			(j.tag("span.kind") != kind || j.tag("server.address") != host || j.tag("server.port") != port) {
			t.Errorf("%q of %s has the tags %v; the model is at %q", j.OperationName, service, j.Tags, address)
		}
	}
}

// asked is a request and how it ends.
type asked struct {
	path    string
	body    map[string]any
	outcome string
	leave   time.Duration // when the client leaves; 0 for never
}

// checkTraces asks in every way and holds each trace to the page's record.
func (s *stack) checkTraces(t *testing.T) {
	asks := map[string]asked{
		"answered":        {"/ask", map[string]any{"question": question, "budget": map[string]any{"answer_tokens": 12}}, "answered", 0},
		"streamed":        {"/ask", map[string]any{"question": question, "stream": true, "answer_mode": "generate", "budget": map[string]any{"answer_tokens": 12}}, "answered", 0},
		"in Korean":       {"/ask", map[string]any{"question": "multilingual-e5-small의 벡터는 수가 몇 개인가요?"}, "answered", 0},
		"refused":         {"/ask", map[string]any{"question": "Who won the chess championship of 1972 in Reykjavik?"}, "refused", 0},
		"wrong":           {"/ask", map[string]any{"question": question, "top_k": 0}, "rejected", 0},
		"does not fit":    {"/ask", map[string]any{"question": strings.Repeat("long ", 10000)}, "rejected", 0},
		"no collection":   {"/ask", map[string]any{"question": question, "collection": "none"}, "rejected", 0},
		"left by client":  {"/ask", map[string]any{"question": question, "answer_mode": "generate", "budget": map[string]any{"answer_tokens": 1000}}, "cancelled", 25 * time.Millisecond},
		"searched":        {"/v1/search", map[string]any{"query": question}, "answered", 0},
		"searched, wrong": {"/v1/search", map[string]any{"query": ""}, "rejected", 0},
	}
	for _, name := range slices.Sorted(maps.Keys(asks)) {
		t.Run(name, func(t *testing.T) {
			row := s.ask(t, asks[name])
			spans := s.trace(t, row.TraceID)
			s.checkTrace(t, row, spans, "ragd")
			checkCall(t, spans, "ragd", "")
		})
	}
}

// ask asks and returns the record, which has the outcome and the figures of the body.
func (s *stack) ask(t *testing.T, ask asked) record {
	t.Helper()
	before := s.records(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if ask.leave > 0 {
		time.AfterFunc(ask.leave, cancel)
	}
	status, data, err := s.post(t, ctx, ask.path, ask.body)
	if err != nil && ask.leave == 0 {
		t.Fatal(err)
	}
	var row record
	until(t, 30*time.Second, "the record", func() bool {
		for id, r := range s.records(t) {
			if _, old := before[id]; !old {
				row = r
				return true
			}
		}
		return false
	})
	if row.Outcome != ask.outcome || row.Route != "POST "+ask.path {
		t.Errorf("%s %q, want %s (%d %.300s)", row.Route, row.Outcome, ask.outcome, status, data)
	}
	if ask.leave == 0 && !bytes.Contains(data, []byte(row.TraceID)) {
		t.Errorf("trace %s is not the body's: %.300s", row.TraceID, data)
	}
	if (ask.outcome == "answered" || ask.outcome == "refused") && ask.body["stream"] == nil {
		s.sameAsBody(t, data, row)
	}
	return row
}

// sameAsBody: the page has the figures of the answer.
func (s *stack) sameAsBody(t *testing.T, data []byte, row record) {
	t.Helper()
	var body struct{ Timings map[string]float64 }
	if err := json.Unmarshal(data, &body); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(body.Timings, row.Timings) {
		t.Errorf("the body says %v, the page %v", body.Timings, row.Timings)
	}
}

// below says what hangs where (DESIGN §5).
var below = map[string]string{
	"pack": "", "retrieval": "", "rerank": "", "chat": "", "embeddings": "retrieval", "dense": "retrieval", "lexical": "retrieval", "fuse": "retrieval",
	"render": "chat", "queue": "chat", "prefill": "chat", "decode": "chat",
}

// checkTrace holds the part of a trace that is one service's to its record: the tree, and
// each stage's time to the microsecond. It returns the service's root.
func (s *stack) checkTrace(t *testing.T, row record, spans []jspan, service string) (root jspan) {
	t.Helper()
	byID, took := map[string]jspan{}, map[string]int64{}
	for _, j := range spans {
		byID[j.SpanID] = j
	}
	isRoot := func(j jspan) bool { return byID[j.parent()].service != service }
	for _, j := range spans {
		if j.service != service {
			continue
		}
		first, _, _ := strings.Cut(j.OperationName, " ")
		parent, inside := byID[j.parent()]
		want, stage := below[first]
		switch {
		case j.parent() != "" && !inside:
			t.Errorf("the parent of %q did not come", j.OperationName)
		case isRoot(j):
			if j.OperationName != row.Route || root.SpanID != "" {
				t.Errorf("a root is %q", j.OperationName)
			}
			root, took["total"] = j, j.Duration
		case stage:
			took[first] += j.Duration
			if up, _, _ := strings.Cut(parent.OperationName, " "); want == "" && !isRoot(parent) || want != "" && up != want {
				t.Errorf("%q hangs below %q", j.OperationName, parent.OperationName)
			}
		}
	}
	for _, stage := range []string{"embed", "dense", "lexical", "fuse", "retrieval", "rerank", "pack", "render", "queue", "prefill", "decode", "total"} {
		name, runs := stage, 1.0
		if stage == "embed" {
			name = "embeddings"
		}
		if stage == "pack" {
			runs = 2 // whose parts are cut to microseconds each
		}
		if got, want := float64(took[name]), math.Round(row.Timings[stage+"_ms"]*1e3); math.Abs(got-want) > runs {
			t.Errorf("%s of %s: Jaeger has %v µs, the record %v", stage, service, got, want)
		}
	}
	t.Logf("%s: %s, %d spans, total %.3f ms", service, row.Outcome, len(spans), row.Timings["total_ms"])
	return root
}
