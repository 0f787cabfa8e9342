//go:build collector

package deploy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ragd/internal/testenv"
)

// at is the same stack with another ragd to ask.
func (s *stack) at(url string) *stack {
	other := *s
	other.ragd = url
	return &other
}

// longAnswer asks for a text that does not end by itself: at this temperature the end
// is one token among thousands.
func longAnswer() map[string]any {
	return map[string]any{
		"question": question, "answer_mode": "generate", "sampling": map[string]any{"temperature": 10, "seed": 7},
		"budget": map[string]any{"answer_tokens": 1500, "context_tokens": 500},
	}
}

// checkFailures: a ragd whose requests have a second and whose tables go away.
func (s *stack) checkFailures(t *testing.T) {
	pool := testenv.Database(t)
	hurried := s.at(s.serve(t, "hurried", freePorts(t, 1)[0], "RAGD_DATABASE_URL="+pool.Config().ConnString(), "RAGD_SERVER_REQUEST_TIMEOUT=1s"))
	hurried.ingest(t)
	t.Run("timeout", func(t *testing.T) {
		row := hurried.ask(t, asked{path: "/ask", body: longAnswer(), outcome: "timeout"})
		hurried.checkTrace(t, row, hurried.trace(t, row.TraceID), "hurried")
		if row.Timings["decode_ms"] == 0 && row.Timings["prefill_ms"] == 0 {
			t.Errorf("the time ran out in no stage of the engine: %v", row.Timings)
		}
	})
	if _, err := pool.Exec(t.Context(), "ALTER TABLE ragd.vectors RENAME TO gone"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/ask", "/v1/search"} {
		t.Run("error of "+path, func(t *testing.T) {
			row := hurried.ask(t, asked{path: path, body: map[string]any{map[string]string{"/ask": "question", "/v1/search": "query"}[path]: question}, outcome: "error"})
			hurried.checkTrace(t, row, hurried.trace(t, row.TraceID), "hurried")
		})
	}
}

// way is a proxy between two ragds that can be in the way.
type way struct {
	*httptest.Server
	mode atomic.Value // "", "fails", "stalls"
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(target)
	through.FlushInterval = -1
	w := &way{}
	w.mode.Store("")
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch w.mode.Load() {
		case "fails":
			http.Error(rw, "broken", http.StatusInternalServerError)
		case "stalls":
			_, _ = io.Copy(io.Discard, r.Body) // a server sees a client leave only then
			<-r.Context().Done()
		default:
			through.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(w.Close)
	return w
}

// checkRemote: a ragd whose engine is another ragd. Where the other answers, its spans
// are in the same tree, below the chat span; where it does not, the tree ends there.
func (s *stack) checkRemote(t *testing.T) {
	p := freePorts(t, 2)
	engine := s.at(s.serve(t, "engine", p[0], "RAGD_DATABASE_URL="+testenv.Database(t).Config().ConnString(), "RAGD_TELEMETRY_TRUST_TRACEPARENT=true"))
	var models struct{ Data []struct{ ID string } }
	getJSON(t, engine.ragd+"/v1/models", &models)
	between := newWay(t, engine.ragd)
	front := s.at(s.serve(t, "front", p[1], "RAGD_DATABASE_URL="+s.database,
		"RAGD_INFERENCE_REMOTE_URL="+between.URL+"/v1", "RAGD_INFERENCE_REMOTE_MODEL="+models.Data[0].ID, "RAGD_INFERENCE_REMOTE_WINDOW=4096", "RAGD_INFERENCE_REMOTE_STALL=10s"))
	short := map[string]any{"question": question, "answer_mode": "generate", "budget": map[string]any{"answer_tokens": 12, "context_tokens": 500}}
	for _, c := range []struct {
		name, mode string
		asked
		engine string // the outcome there, empty where nothing arrives
	}{
		{"answered", "", asked{path: "/ask", body: short, outcome: "answered"}, "answered"},
		{"refused", "", asked{path: "/ask", body: map[string]any{"question": "Who won the chess championship of 1972 in Reykjavik?"}, outcome: "refused"}, ""},
		{"left by client", "", asked{path: "/ask", body: longAnswer(), outcome: "cancelled", leave: 2 * time.Second}, "cancelled"},
		{"error", "fails", asked{path: "/ask", body: short, outcome: "error"}, ""},
		{"timeout", "stalls", asked{path: "/ask", body: short, outcome: "timeout"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			between.mode.Store(c.mode)
			row := front.ask(t, c.asked)
			services := []string{"front"}
			if c.engine != "" {
				services = append(services, "engine")
			}
			spans := front.trace(t, row.TraceID, services...)
			if root := front.checkTrace(t, row, spans, "front"); root.parent() != "" {
				t.Errorf("the front's root has a parent: %+v", root)
			}
			checkCall(t, spans, "front", between.URL)
			checkCall(t, spans, "engine", "")
			if c.engine == "" {
				for _, j := range spans {
					if j.service != "front" {
						t.Errorf("%s has the span %q", j.service, j.OperationName)
					}
				}
				return
			}
			front.checkContinues(t, engine, row, spans, c.engine)
		})
	}
}

// checkContinues: what the engine recorded of the request hangs below the front's chat
// span, begins after it, and is the engine's own record to the microsecond. Its first token
// comes before the front's.
func (s *stack) checkContinues(t *testing.T, engine *stack, row record, spans []jspan, outcome string) {
	t.Helper()
	there, ok := engine.records(t)[row.TraceID]
	if !ok || there.Outcome != outcome || there.Route != "POST /v1/chat/completions" {
		t.Fatalf("the engine's record of trace %s is %+v, want %s", row.TraceID, there, outcome)
	}
	root := engine.checkTrace(t, there, spans, "engine")
	for _, j := range spans {
		if j.SpanID == root.parent() && (j.service != "front" || !strings.HasPrefix(j.OperationName, "chat ") || root.StartTime < j.StartTime) {
			t.Errorf("the engine's root, at %d, hangs below %q of %s, at %d", root.StartTime, j.OperationName, j.service, j.StartTime)
		}
	}
	// Its first token was sampled before the front had its text. The last may have none.
	if first, waited := there.Timings["llm_ttft_ms"], row.Timings["llm_ttft_ms"]; outcome == "answered" && (first <= 0 || first > waited) {
		t.Errorf("the engine's first token came after %.3f ms, the front's after %.3f", first, waited)
	}
}
