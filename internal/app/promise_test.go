package app

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
	"ragd/ingest"
	"ragd/internal/answer"
	"ragd/prompt/budget"
	"ragd/prompt/chat"
	"ragd/rerank"
	"ragd/retrieve"
	"ragd/telemetry"
)

// machine takes for its steps what SmolLM2 was measured to take on two threads: rows
// that cost the more the more lies before them, and steps that scatter, a few of
// them far out.
type machine struct {
	*enginetest.Decoder
	mu  sync.Mutex
	rng *rand.Rand
}

// Config has the shape that the engine guesses the cost of depth from.
func (m *machine) Config() model.Config {
	c := m.Decoder.Config()
	c.Width, c.Heads, c.KVHeads, c.HeadDim, c.FeedForward = 576, 9, 3, 64, 1536
	return c
}

// row is the time of a row at the start of a prompt, in seconds; deep before it double
// that.
const row, deep = 0.334e-3, 863.0

func (m *machine) step(b model.Batch) error {
	const decode, answer = 2.6e-3, 0.1e-3
	took, decoding := 0.0, false
	for _, p := range b {
		cost := row
		if len(p.Tokens) == p.Logits {
			decoding, cost = true, answer
		}
		for i := range p.Tokens {
			took += cost * (1 + float64(p.Start+i)/deep)
		}
	}
	if decoding {
		took += decode
	}
	m.mu.Lock()
	scatter := math.Exp(0.05 * m.rng.NormFloat64())
	if m.rng.IntN(100) == 0 {
		scatter *= 2
	}
	m.mu.Unlock()
	time.Sleep(time.Duration(scatter * max(decode, took) * float64(time.Second)))
	return nil
}

// next ends an answer after some forty tokens, as chance has it.
func (m *machine) next(tokens []int32) int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rng.IntN(40) == 0 {
		return enginetest.EOS
	}
	return 'a' + int32(len(tokens)%20)
}

// library finds six chunks of 120 to 380 tokens, others for each question.
type library struct{}

func (library) Model() string { return "e" }

func (library) EmbedQuery(context.Context, string) ([]float32, int, error) {
	time.Sleep(4 * time.Millisecond)
	return []float32{1, 0}, 1, nil
}

func (library) Retrieve(_ context.Context, q retrieve.Query) ([]retrieve.Hit, error) {
	time.Sleep(8 * time.Millisecond)
	rng := rand.New(rand.NewPCG(uint64(len(q.Text)), uint64(q.Text[0])+uint64(q.Text[1])<<8+uint64(q.Text[2])<<16))
	var hits []retrieve.Hit
	for i := range 6 {
		text := fmt.Sprintf("%06x ", rng.IntN(1<<24)) + strings.Repeat("word ", 24+rng.IntN(52))
		score := 0.95 - 0.01*float32(i)
		hits = append(hits, retrieve.Hit{
			Chunk:    ingest.Chunk{ID: int64(i + 1), Text: text, Sentences: []ingest.Span{{End: len(text)}}},
			Document: retrieve.Document{ID: int64(i + 1), Path: "a.md", Title: "A"}, SentenceVectors: [][]float32{{1, 0}},
			Scores: retrieve.Scores{Dense: score, DensePart: score, Fused: score},
		})
	}
	return hits, nil
}

// promiseRoad is the question road over that machine and library.
func promiseRoad(t *testing.T, seed uint64) (*answer.Service, *engine.Engine) {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	tel, err := telemetry.New(t.Context(), telemetry.Config{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := chat.Parse(`{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}{% endfor %}`)
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{Decoder: enginetest.NewDecoder(2048, 8192), rng: rand.New(rand.NewPCG(seed, 0))}
	m.Before, m.Next = m.step, m.next
	e, err := engine.New(m, enginetest.Tokenizer{}, engine.Config{NoLookup: true})
	if err != nil {
		t.Fatal(err)
	}
	reranker, err := rerank.New(rerank.None{}, rerank.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	s, err := answer.New(answer.Deps{
		Embedder: library{}, Retriever: library{}, Reranker: reranker, Template: tpl, Tokenizer: byteTokens{},
		Generator: &generator{forms: newForms(enginetest.Tokenizer{}, enginetest.Vocabulary), engine: e, info: answer.ModelInfo{Name: "m", Window: e.Window()}}, Telemetry: tel,
	}, answer.Config{TopK: 6, MaxChunks: 6, ContextTokens: 4096, AnswerTokens: 128, MinConfidence: -1e9})
	if err != nil {
		t.Fatal(err)
	}
	return s, e
}

// kept is how the promises of a run came out.
type kept struct {
	count, inTime, cut, meagre int
	off                        []float64
}

func (k *kept) add(r *answer.Result, asked float64) {
	f := r.FirstToken
	k.count++
	if f.ObservedMS <= asked {
		k.inTime++
	}
	k.off = append(k.off, math.Abs(f.PredictedMS-f.ObservedMS)/f.ObservedMS)
	var left []int
	for _, d := range r.Usage.Ledger.Dropped {
		if d.Reason == budget.OverTTFT {
			left = append(left, d.Tokens)
		}
	}
	if len(left) > 0 {
		k.cut++
	}
	slices.Sort(left)
	if len(left) < 2 {
		return
	}
	more := 0.0
	for i := range left[0] + left[1] {
		more += row * (1 + float64(r.Usage.InputTokens+i)/deep)
	}
	if more*1e3 <= asked-f.ObservedMS {
		k.meagre++
	}
}

// TestPromisesAreKept asks questions that arrive at random moments, with a time for
// the first token, on the clock of a bubble. What DESIGN asks of the budget holds:
// nearly all come in time, the prediction is close, and next to no answer has more than
// a chunk less than would have fitted.
func TestPromisesAreKept(t *testing.T) {
	const asked, questions, warming = 1000, 240, 40
	for _, rate := range []float64{0.3, 0.8, 1} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, e := promiseRoad(t, 7)
				rng := rand.New(rand.NewPCG(3, 4))
				var k kept
				var mu sync.Mutex
				var all sync.WaitGroup
				for i := range questions {
					all.Go(func() {
						ms := asked
						res, err := s.Ask(t.Context(), time.Now(), answer.Request{
							Question: fmt.Sprintf("%03d?", i), AnswerMode: answer.ModeGenerate, Budget: &answer.Budget{TTFTMS: &ms, Detail: answer.DetailChunks},
						}, ignore{})
						if err != nil {
							t.Errorf("question %d: %v", i, err)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						if i >= warming {
							k.add(res, asked)
						}
					})
					time.Sleep(time.Duration(rng.ExpFloat64() / rate * float64(time.Second)))
				}
				all.Wait()
				if err := e.Close(context.Background()); err != nil {
					t.Error(err)
				}
				slices.Sort(k.off)
				median := k.off[len(k.off)/2]
				t.Logf("%d of %d in time, off by %.1f %% at the median, %.1f %% at the 95th percentile, %d of %d cut by more than a chunk too much",
					k.inTime, k.count, 100*median, 100*k.off[len(k.off)*95/100], k.meagre, k.cut)
				if float64(k.inTime) < 0.95*float64(k.count) || median > 0.15 {
					t.Error("too many late, or too far from what was predicted")
				}
				// What no forecast knows, a step that takes twice its time and a prompt behind
				// it, has to have some room.
				if k.cut < k.count/2 || float64(k.meagre) > 0.04*float64(k.cut) {
					t.Error("too many with too little evidence, or too few that had to do with less")
				}
			})
		})
	}
}

// ignore reads nothing.
type ignore struct{}

func (ignore) Begun(string)             {}
func (ignore) Queued(int)               {}
func (ignore) Sources(answer.Sources)   {}
func (ignore) Delta(string)             {}
func (ignore) Citation(answer.Citation) {}
