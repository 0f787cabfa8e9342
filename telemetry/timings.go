package telemetry

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// Stage is one part of a request's time.
type Stage uint8

// The stages of DESIGN §5. Rewrite, Embed, Dense, Lexical and Fuse lie inside Retrieval;
// the others are disjoint.
const (
	StageEmbed Stage = iota
	StageDense
	StageLexical
	StageFuse
	StageRewrite
	StageRetrieval
	StageRerank
	StagePack
	StageRender
	StageQueue
	StagePrefill
	StageDecode
	stages
)

var stageNames = [stages]string{
	"embed", "dense", "lexical", "fuse", "rewrite", "retrieval", "rerank", "pack", "render", "queue", "prefill", "decode",
}

// String is the stage's name in spans, metrics and JSON.
func (s Stage) String() string { return stageNames[s] }

// disjoint are the stages whose sum, with Other, is the total.
var disjoint = [...]Stage{
	StageRetrieval, StageRerank, StagePack, StageRender, StageQueue, StagePrefill, StageDecode,
}

// Timings is the latency ledger of one request. All values come from the
// monotonic clock, and every consumer (spans, metrics, log row, Server-Timing,
// response body) reads this one value.
type Timings struct {
	stage [stages]time.Duration
	// LLMTTFT is submitted to the engine → first token sampled, TTFT is request
	// received → first token written to the client; 0 when there was no token.
	LLMTTFT, TTFT time.Duration
	// TPOT is decode time over the tokens after the first; 0 with fewer than two.
	TPOT time.Duration
	// Total is request received → last byte.
	Total time.Duration
}

// Stage is the time spent in one stage.
func (t Timings) Stage(s Stage) time.Duration { return t.stage[s] }

// Other is what no stage accounts for: Total minus the disjoint stages.
func (t Timings) Other() time.Duration {
	rest := t.Total
	for _, s := range disjoint {
		rest -= t.stage[s]
	}
	return rest
}

// Row is one line of the ledger.
type Row struct {
	Name     string
	Duration time.Duration
}

// Rows lists the disjoint stages and the remainder; their sum is the total.
func (t Timings) Rows() []Row {
	rows := make([]Row, 0, len(disjoint)+1)
	for _, s := range disjoint {
		rows = append(rows, Row{s.String(), t.stage[s]})
	}
	return append(rows, Row{"other", t.Other()})
}

// timingsJSON is Timings in milliseconds, to the microsecond.
type timingsJSON struct {
	Embed     float64  `json:"embed_ms"`
	Dense     float64  `json:"dense_ms"`
	Lexical   float64  `json:"lexical_ms"`
	Fuse      float64  `json:"fuse_ms"`
	Rewrite   float64  `json:"rewrite_ms"`
	Retrieval float64  `json:"retrieval_ms"`
	Rerank    float64  `json:"rerank_ms"`
	Pack      float64  `json:"pack_ms"`
	Render    float64  `json:"render_ms"`
	Queue     float64  `json:"queue_ms"`
	Prefill   float64  `json:"prefill_ms"`
	LLMTTFT   *float64 `json:"llm_ttft_ms"`
	TTFT      *float64 `json:"ttft_ms"`
	Decode    float64  `json:"decode_ms"`
	TPOT      *float64 `json:"tpot_ms"`
	Total     float64  `json:"total_ms"`
	Other     float64  `json:"other_ms"`
}

// MarshalJSON writes milliseconds; times that did not happen are null.
func (t Timings) MarshalJSON() ([]byte, error) {
	return json.Marshal(timingsJSON{
		Embed: ms(t.stage[StageEmbed]), Dense: ms(t.stage[StageDense]), Lexical: ms(t.stage[StageLexical]),
		Fuse: ms(t.stage[StageFuse]), Rewrite: ms(t.stage[StageRewrite]), Retrieval: ms(t.stage[StageRetrieval]), Rerank: ms(t.stage[StageRerank]),
		Pack: ms(t.stage[StagePack]), Render: ms(t.stage[StageRender]), Queue: ms(t.stage[StageQueue]),
		Prefill: ms(t.stage[StagePrefill]), LLMTTFT: msOrNil(t.LLMTTFT), TTFT: msOrNil(t.TTFT),
		Decode: ms(t.stage[StageDecode]), TPOT: msOrNil(t.TPOT), Total: ms(t.Total), Other: ms(t.Other()),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote; Other is derived again.
func (t *Timings) UnmarshalJSON(data []byte) error {
	var j timingsJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("timings: %w", err)
	}
	t.stage = [stages]time.Duration{
		fromMS(j.Embed), fromMS(j.Dense), fromMS(j.Lexical), fromMS(j.Fuse), fromMS(j.Rewrite), fromMS(j.Retrieval), fromMS(j.Rerank),
		fromMS(j.Pack), fromMS(j.Render), fromMS(j.Queue), fromMS(j.Prefill), fromMS(j.Decode),
	}
	t.Total = fromMS(j.Total)
	t.LLMTTFT, t.TTFT, t.TPOT = fromMSOrNil(j.LLMTTFT), fromMSOrNil(j.TTFT), fromMSOrNil(j.TPOT)
	return nil
}

// ServerTiming is the value of a Server-Timing header (W3C Server Timing):
// the stages finished so far.
func (t Timings) ServerTiming() string {
	var b strings.Builder
	for _, s := range disjoint {
		if t.stage[s] == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s;dur=%.3f", s, ms(t.stage[s]))
	}
	return b.String()
}

func ms(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }

func fromMS(v float64) time.Duration { return time.Duration(math.Round(v * float64(time.Millisecond))) }

func msOrNil(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	v := ms(d)
	return &v
}

func fromMSOrNil(v *float64) time.Duration {
	if v == nil {
		return 0
	}
	return fromMS(*v)
}
