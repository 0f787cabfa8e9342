package app

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"ragd/internal/answer"
	"ragd/telemetry"
)

// TestEndToEnd runs the real PostgreSQL, embedder and answer model, started once
// for all of its parts. Each part has collections of its own.
func TestEndToEnd(t *testing.T) {
	l := start(t, settings(t))
	for _, part := range []struct {
		name string
		run  func(*testing.T, *live)
	}{
		{"example corpus", testExampleCorpus},
		{"damaged text", testDamagedText},
		{"legacy encodings", testLegacyEncodings},
		{"front matter", testFrontMatter},
		{"headings and fences", testHeadings},
		{"links and pipes", testLinks},
		{"nothing in it", testNothingInIt},
		{"long runs", testLongRuns},
		{"changed and deleted", testChanged},
		{"same folder at once", testSameFolderAtOnce},
		{"characters of queries", testCharactersOfQueries},
		{"control tokens", testControlTokens},
		{"numbers", testNumbers},
		{"bodies", testBodies},
		{"stop strings", testStopStrings},
		{"characters over tokens", testCharactersOverTokens},
		{"exact limits", testExactLimits},
		{"long questions", testLongQuestions},
		{"clients that leave", testClientsLeave},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, l) })
	}
}

// testExampleCorpus asks the questions that come with the examples.
func testExampleCorpus(t *testing.T, l *live) {
	examples := filepath.Join("..", "..", "examples")
	r := l.ingest(t, "examples", false, filepath.Join(examples, "corpus"))
	if r.Failed != 0 || r.Indexed != r.Found || r.Chunks < r.Found {
		t.Fatalf("%+v", r)
	}
	if again := l.ingest(t, "examples", false, filepath.Join(examples, "corpus")); again.Unchanged != r.Found {
		t.Errorf("the second run: %+v", again)
	}
	file, err := os.ReadFile(filepath.Join(examples, "questions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(file)) {
		var q struct {
			Question, Document string
			MustContain        string `json:"must_contain"`
		}
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		t.Run(q.Question, func(t *testing.T) {
			req := body{"question": q.Question, "collection": "examples", "budget": body{"answer_tokens": 24}}
			res := l.asked(t, req)
			if !strings.Contains(res.Answer, q.MustContain) || !slices.ContainsFunc(res.Sources.Cited, func(s answer.Source) bool { return s.Document == q.Document }) {
				t.Errorf("answer %q cites %+v; want %q from %s", res.Answer, res.Sources.Cited, q.MustContain, q.Document)
			}
			checkTokens(t, res)
			checkQuotes(t, res)
			checkTimes(t, l, res)
			checkLogRow(t, l, res)
			checkStream(t, l, req, res)
		})
	}
}

// checkTokens holds the token ledger to its sums.
func checkTokens(t *testing.T, res *answer.Result) {
	t.Helper()
	u := res.Usage
	sum := u.Ledger.Template + u.Ledger.System + u.Ledger.History + u.Ledger.Tools + u.Ledger.Question
	for _, e := range u.Ledger.Evidence {
		sum += e.Tokens
	}
	if sum != u.InputTokens {
		t.Errorf("components sum to %d, input is %d", sum, u.InputTokens)
	}
	if u.InputTokens+u.Ledger.AnswerReserved > u.Ledger.Window {
		t.Errorf("%d and %d tokens do not fit %d", u.InputTokens, u.Ledger.AnswerReserved, u.Ledger.Window)
	}
	if n := res.UsedChunks + len(u.Ledger.Dropped); n != res.RetrievedChunks || len(res.Sources.Retrieved) != res.RetrievedChunks {
		t.Errorf("%d retrieved, %d presented and dropped", res.RetrievedChunks, n)
	}
	for _, d := range u.Ledger.Dropped {
		if d.Reason == "" || d.Tokens < 1 {
			t.Errorf("dropped without reason or tokens: %+v", d)
		}
	}
}

// checkQuotes holds citations to the text: an extracted sentence stands in the
// chunk that it is cited from.
func checkQuotes(t *testing.T, res *answer.Result) {
	t.Helper()
	runes := []rune(res.Answer)
	for _, c := range res.Citations {
		if c.Quote.Start < 0 || c.Quote.End > len(runes) || c.Quote.Start >= c.Quote.End {
			t.Errorf("citation %+v of an answer of %d characters", c, len(runes))
			continue
		}
		if c.Marker < 1 || c.Marker > len(res.Sources.Presented) || res.Sources.Presented[c.Marker-1].ChunkID != c.ChunkID {
			t.Errorf("marker %d names chunk %d", c.Marker, c.ChunkID)
		}
	}
}

// checkTimes holds the latency ledger to its sum and to the spans.
func checkTimes(t *testing.T, l *live, res *answer.Result) {
	t.Helper()
	sum := time.Duration(0)
	for _, row := range res.Timings.Rows() {
		sum += row.Duration
	}
	if d := (sum - res.Timings.Total).Abs(); d > time.Millisecond {
		t.Errorf("stages sum to %v, the total is %v", sum, res.Timings.Total)
	}
	spans := map[string]time.Duration{}
	for _, s := range l.spans.GetSpans() {
		if s.SpanContext.TraceID().String() == res.TraceID {
			name, _, _ := strings.Cut(s.Name, " ")
			spans[name] += s.EndTime.Sub(s.StartTime)
		}
	}
	want := map[string]time.Duration{"POST": res.Timings.Total, "embeddings": res.Timings.Stage(telemetry.StageEmbed)}
	for _, s := range []telemetry.Stage{
		telemetry.StageRetrieval, telemetry.StageDense, telemetry.StageRerank, telemetry.StagePack,
		telemetry.StageRender, telemetry.StageQueue, telemetry.StagePrefill, telemetry.StageDecode,
	} {
		want[s.String()] = res.Timings.Stage(s)
	}
	for name, d := range want {
		if diff := (spans[name] - d).Abs(); diff > 5*time.Microsecond {
			t.Errorf("the spans %q took %v, the body says %v", name, spans[name], d)
		}
	}
}

// checkLogRow looks for the fields of DESIGN §5.
func checkLogRow(t *testing.T, l *live, res *answer.Result) {
	t.Helper()
	row := l.log.row(t, res.TraceID)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for field, want := range map[string]float64{
		"retrieval_ms": ms(res.Timings.Stage(telemetry.StageRetrieval)), "rerank_ms": ms(res.Timings.Stage(telemetry.StageRerank)),
		"ttft_ms": ms(res.Timings.TTFT), "total_ms": ms(res.Timings.Total),
		"input_tokens": float64(res.Usage.InputTokens), "output_tokens": float64(res.Usage.OutputTokens),
		"retrieved_chunks": float64(res.RetrievedChunks), "used_chunks": float64(res.UsedChunks),
	} {
		if got, ok := row[field].(float64); !ok || math.Abs(got-want) > 0.002 {
			t.Errorf("the log says %s = %v, the body %v", field, row[field], want)
		}
	}
	if row["outcome"] != "answered" || row["span_id"] == "" {
		t.Errorf("log row %v", row)
	}
	for _, content := range []string{"question", "answer"} {
		if _, ok := row[content]; ok {
			t.Errorf("the log holds the %s", content)
		}
	}
}

// checkStream asks the same again as a stream.
func checkStream(t *testing.T, l *live, req body, plain *answer.Result) {
	t.Helper()
	events, text := l.stream(t, req)
	res := done(t, events)
	if text != res.Answer && strings.TrimRight(text, " \n") != res.Answer {
		t.Errorf("streamed %q, done says %q", text, res.Answer)
	}
	if res.Answer != plain.Answer {
		t.Errorf("streamed %q, plain %q", res.Answer, plain.Answer)
	}
	var names []string
	for _, e := range events {
		if len(names) == 0 || names[len(names)-1] != e.name {
			names = append(names, e.name)
		}
	}
	if len(names) < 4 || names[0] != "queued" || names[1] != "sources" || names[len(names)-1] != "done" {
		t.Errorf("events %v", names)
	}
	citations := 0
	for _, e := range events {
		if e.name == "citation" {
			citations++
		}
	}
	if citations != len(res.Citations) {
		t.Errorf("%d citations streamed, %d in the body", citations, len(res.Citations))
	}
	if len(res.Sources.Cited) == 0 || res.ID == plain.ID || res.TraceID == plain.TraceID {
		t.Errorf("done %+v", res)
	}
}

// allEnded fails unless every span of every question ended once, below one root.
func allEnded(t *testing.T, spans tracetest.SpanStubs) {
	t.Helper()
	roots := map[trace.TraceID]int{}
	asked := map[trace.TraceID]bool{}
	seen := map[trace.SpanID]bool{}
	for _, s := range spans {
		id := s.SpanContext.SpanID()
		if seen[id] || s.EndTime.IsZero() {
			t.Errorf("span %s %q ended twice or never", id, s.Name)
		}
		seen[id] = true
		if !s.Parent.IsValid() {
			roots[s.SpanContext.TraceID()]++
		}
		asked[s.SpanContext.TraceID()] = asked[s.SpanContext.TraceID()] || s.Name == "POST /ask"
	}
	for id, ask := range asked {
		if ask && roots[id] != 1 {
			t.Errorf("trace %s has %d roots", id, roots[id])
		}
	}
}
