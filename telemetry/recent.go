package telemetry

import (
	"sync"
	"time"
	"unicode/utf8"

	"ragd/telemetry/cost"
)

// recentRows is how many finished requests are kept for the latency page. A row
// is about a kilobyte.
const recentRows = 10000

// maxQuestion bounds a recorded question on the page, in bytes.
const maxQuestion = 400

// PromptTokens is the prompt by component; the sum is the input tokens.
type PromptTokens struct {
	Template int   `json:"template"`
	System   int   `json:"system"`
	History  int   `json:"history"`
	Tools    int   `json:"tools"`
	Question int   `json:"question"`
	Evidence []int `json:"evidence"` // one a presented chunk
}

// Dropped is what one reason kept out of the prompt.
type Dropped struct {
	Reason string `json:"reason"`
	Chunks int    `json:"chunks"`
	Tokens int    `json:"tokens"`
}

// Interval is when a stage ran, from the receipt of the request. A stage may run
// more than once.
type Interval struct {
	Stage   string  `json:"stage"`
	StartMS float64 `json:"start_ms"`
	MS      float64 `json:"ms"`
}

// Record is one finished request as the latency page shows it. Its Timings are
// those of the response body.
type Record struct {
	// Seq counts finished requests of this process from 1.
	Seq             uint64       `json:"seq"`
	Received        time.Time    `json:"received"`
	Route           string       `json:"route"`
	TraceID         string       `json:"trace_id"`
	ID              string       `json:"id"`
	Outcome         Outcome      `json:"outcome"`
	ErrorCode       string       `json:"error,omitempty"`
	Collection      string       `json:"collection"`
	Model           string       `json:"model"`
	AnswerKind      string       `json:"answer_kind"`
	FinishReason    string       `json:"finish_reason"`
	InputTokens     int          `json:"input_tokens"`
	OutputTokens    int          `json:"output_tokens"`
	CachedTokens    int          `json:"cached_tokens"`
	RetrievedChunks int          `json:"retrieved_chunks"`
	UsedChunks      int          `json:"used_chunks"`
	Cost            *cost.Cost   `json:"cost,omitempty"`
	Prompt          PromptTokens `json:"prompt"`
	Dropped         []Dropped    `json:"dropped"`
	Timings         Timings      `json:"timings"`
	Intervals       []Interval   `json:"intervals"`
	// Question is empty unless content recording is on.
	Question string `json:"question,omitempty"`
}

// recent keeps the last records in a ring. The record with sequence number n
// lies at (n-1) modulo the length of the ring.
type recent struct {
	mu   sync.Mutex
	ring []Record
	last uint64
	size int
}

func newRecent(size int) *recent { return &recent{size: size} }

func (r *recent) add(rec Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	rec.Seq = r.last
	if len(r.ring) < r.size {
		r.ring = append(r.ring, rec)
		return
	}
	r.ring[(r.last-1)%uint64(r.size)] = rec
}

// since returns at most limit records after sequence number seq, oldest first;
// when more are kept, the oldest of them.
func (r *recent) since(seq uint64, limit int) []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.last - uint64(len(r.ring))
	from := max(seq, first)
	if from >= r.last {
		return []Record{}
	}
	out := make([]Record, 0, min(int(r.last-from), limit))
	for n := from + 1; n <= r.last && len(out) < limit; n++ {
		out = append(out, r.ring[(n-1)%uint64(r.size)])
	}
	return out
}

// Recent returns at most limit finished requests with a sequence number over
// seq, oldest first. The last 10,000 requests are kept.
func (t *Telemetry) Recent(seq uint64, limit int) []Record { return t.recent.since(seq, limit) }

// Active is how many requests are running.
func (t *Telemetry) Active() int { return int(t.active.Load()) }

// Started is when the process began to count; sequence numbers of another start
// mean nothing.
func (t *Telemetry) Started() time.Time { return t.started }

// RecordsContent says whether questions and answers are recorded.
func (t *Telemetry) RecordsContent() bool { return t.cfg.RecordContent }

func (r *Request) keep(t Timings, s Summary) {
	rec := Record{
		Received: r.received, Route: r.route, TraceID: r.TraceID(), ID: s.ID, Outcome: s.Outcome, ErrorCode: s.ErrorCode,
		Collection: s.Collection, Model: s.Model, AnswerKind: s.AnswerKind, FinishReason: s.FinishReason,
		InputTokens: s.InputTokens, OutputTokens: s.OutputTokens, CachedTokens: s.CachedTokens,
		RetrievedChunks: s.RetrievedChunks, UsedChunks: s.UsedChunks,
		Cost: s.Cost, Prompt: s.Prompt, Dropped: s.Dropped, Timings: t, Intervals: r.intervals(),
	}
	if r.t.cfg.RecordContent {
		rec.Question = clip(s.Question, maxQuestion)
	}
	r.t.recent.add(rec)
}

// clip cuts s to at most n bytes at a character. The copy lets a long s go.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return string([]byte(s[:n])) + "…"
}
