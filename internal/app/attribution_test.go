package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
	"ragd/ingest"
	"ragd/internal/answer"
	"ragd/internal/httpapi"
	"ragd/internal/keys"
	"ragd/prompt/chat"
	"ragd/rerank"
	"ragd/retrieve"
	"ragd/telemetry"
)

// Where a delay can be put in. The values are what each takes without one, so
// that no stage is empty; a delay that is charged twice or to the wrong stage
// then shows in the others.
type delays struct {
	embed, dense, lexical, fuse, rerank time.Duration
	// prefill is one step that reads a prompt, decode one that does not. The first
	// step that only decodes takes firstDecode more.
	prefill, decode, firstDecode time.Duration
	// busy is how long the engine is taken when the request arrives.
	busy time.Duration
	// next are the tokens of the answer, printable bytes where it is nil.
	next func(tokens []int32) int32
	// sources is how long the client takes to read the event of that name, last how
	// long for the last words.
	sources, last time.Duration
}

func usual() delays {
	const ms = time.Millisecond
	return delays{embed: 3 * ms, dense: 9 * ms, lexical: 9 * ms, fuse: ms, rerank: 2 * ms, prefill: 20 * ms, decode: 4 * ms}
}

// The road's ends, each as slow as it is told.
type (
	slowEmbedder  struct{ d *delays }
	slowRetriever struct{ d *delays }
	slowScorer    struct{ d *delays }
	byteTokens    struct{ enginetest.Tokenizer }
)

func (slowEmbedder) Model() string { return "e" }

func (s slowEmbedder) EmbedQuery(context.Context, string) ([]float32, int, error) {
	time.Sleep(s.d.embed)
	return []float32{1, 0}, 1, nil
}

// Retrieve runs dense and lexical side by side, as the real one does.
func (s slowRetriever) Retrieve(ctx context.Context, q retrieve.Query) ([]retrieve.Hit, error) {
	part := func(p retrieve.Part, d time.Duration) {
		_, end := q.Begin(ctx, p)
		time.Sleep(d)
		end(nil)
	}
	lexical := make(chan struct{})
	go func() {
		defer close(lexical)
		part(retrieve.Lexical, s.d.lexical)
	}()
	part(retrieve.Dense, s.d.dense)
	<-lexical
	part(retrieve.Fuse, s.d.fuse)
	text := "The lamp is violet."
	return []retrieve.Hit{{
		Chunk:    ingest.Chunk{ID: 1, Text: text, Sentences: []ingest.Span{{End: len(text)}}},
		Document: retrieve.Document{ID: 1, Path: "lamp.md", Title: "Lamp"}, SentenceVectors: [][]float32{{1, 0}},
		Scores: retrieve.Scores{Dense: 0.95, DensePart: 0.95, Fused: 0.95},
	}}, nil
}

func (slowScorer) Name() string { return "slow" }

func (s slowScorer) Score(_ context.Context, _ retrieve.Query, hits []retrieve.Hit) (rerank.Rating, error) {
	time.Sleep(s.d.rerank)
	return rerank.Rating{Scores: make([]float32, len(hits))}, nil
}

func (byteTokens) Chat(ids []int32) []int32 { return ids }

// before makes the decoder's steps as long as they are to be.
func (d *delays) before() func(model.Batch) error {
	decoded := false
	return func(b model.Batch) error {
		if len(b[0].Tokens) > 1 {
			time.Sleep(d.prefill)
			return nil
		}
		time.Sleep(d.decode)
		if !decoded {
			decoded = true
			time.Sleep(d.firstDecode)
		}
		return nil
	}
}

// slowClient reads events and takes its time for some.
type slowClient struct {
	*httptest.ResponseRecorder
	d      *delays
	deltas int
	words  int       // deltas that come
	first  time.Time // when the first was written
}

func (c *slowClient) Write(p []byte) (int, error) {
	switch {
	case strings.HasPrefix(string(p), "event: sources"):
		time.Sleep(c.d.sources)
	case strings.HasPrefix(string(p), "event: delta"):
		if c.deltas++; c.deltas == 1 {
			c.first = time.Now()
		}
		if c.deltas == c.words {
			time.Sleep(c.d.last)
		}
	}
	return c.ResponseRecorder.Write(p)
}

// answerTokens is how long the answer is; each token is a delta of its own.
const answerTokens = 6

// road is the whole service over a decoder and stages that take the time they are
// told to: HTTP, the question road, the engine.
func road(t *testing.T, d *delays) (http.Handler, *engine.Engine) {
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
	reranker, err := rerank.New(slowScorer{d}, rerank.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	dec := enginetest.NewDecoder(1024, 8192)
	dec.Next = func(tokens []int32) int32 { return 'a' + int32(len(tokens)%20) }
	if d.next != nil {
		dec.Next = d.next
	}
	dec.Before = d.before()
	e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{MaxRunning: 1, StepTokens: 8192, PieceTokens: 8192, NoLookup: true, NoPrefixCache: true})
	if err != nil {
		t.Fatal(err)
	}
	asker, err := answer.New(answer.Deps{
		Embedder: slowEmbedder{d}, Retriever: slowRetriever{d}, Reranker: reranker, Template: tpl, Tokenizer: byteTokens{},
		Generator: &generator{forms: newForms(enginetest.Tokenizer{}, enginetest.Vocabulary), engine: e, info: answer.ModelInfo{Name: "m", Window: e.Window()}}, Telemetry: tel,
	}, answer.Config{TopK: 5, MaxChunks: 1, ContextTokens: 512, AnswerTokens: answerTokens, MinConfidence: -1e9})
	if err != nil {
		t.Fatal(err)
	}
	open, err := keys.NewGuard(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return httpapi.New(httpapi.Deps{Guard: open, Asker: asker, Log: quiet, Metrics: http.NotFoundHandler(), Latency: http.NotFoundHandler(), LatencyData: http.NotFoundHandler()},
		httpapi.Config{MaxBodyBytes: 1 << 20, RequestTimeout: time.Hour}), e
}

// askOver asks one streamed question on the clock of a bubble, which moves only
// when all sleep, and returns the body's ledger.
func askOver(t *testing.T, d delays) (out telemetry.Timings) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		handler, e := road(t, &d)
		defer func() {
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		if d.busy > 0 {
			occupy(t, e, &d)
		}
		client := &slowClient{ResponseRecorder: httptest.NewRecorder(), d: &d, words: answerTokens}
		handler.ServeHTTP(client, httptest.NewRequest(http.MethodPost, "/ask", strings.NewReader(`{"question":"Which lamp is violet?","stream":true}`)))
		_, data, ok := strings.Cut(client.Body.String(), "event: done\ndata: ")
		var res answer.Result
		if !ok || json.Unmarshal([]byte(data), &res) != nil || res.Usage.OutputTokens != answerTokens {
			t.Fatalf("answered %s", client.Body)
		}
		// A client that was held up gets what came meanwhile in one.
		if client.deltas != answerTokens && d.sources == 0 {
			t.Fatalf("%d deltas of %d tokens", client.deltas, answerTokens)
		}
		out = res.Timings
	})
	return out
}

// occupy gives the engine a request that takes as long as it is to be busy: one
// step, and no token after the first.
func occupy(t *testing.T, e *engine.Engine, d *delays) {
	t.Helper()
	usual := d.prefill
	d.prefill = d.busy
	if _, err := e.Submit(t.Context(), engine.Request{Tokens: []int32{'x', 'y'}, MaxTokens: 1}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // it is in its step
	d.prefill = usual
}

// ledger is every figure of a Timings by name.
func ledger(t telemetry.Timings) map[string]time.Duration {
	out := map[string]time.Duration{"total": t.Total, "ttft": t.TTFT, "llm_ttft": t.LLMTTFT}
	for _, r := range t.Rows() {
		out[r.Name] = r.Duration
	}
	for _, s := range []telemetry.Stage{telemetry.StageEmbed, telemetry.StageDense, telemetry.StageLexical, telemetry.StageFuse} {
		out[s.String()] = t.Stage(s)
	}
	return out
}

// TestDelaysAreChargedToTheirStage: a delay in one place moves the figures that
// hold that place by the delay, and no other. The clock is the bubble's, so the
// bound is the microsecond that the body is written to, on any machine.
func TestDelaysAreChargedToTheirStage(t *testing.T) {
	const delay = 250 * time.Millisecond
	before := askOver(t, usual())
	submitted := before.Stage(telemetry.StageRetrieval) + before.Stage(telemetry.StageRerank)
	for _, c := range []struct {
		name  string
		put   func(d *delays)
		moves string
	}{
		{"nothing", func(*delays) {}, ""},
		{"embedder", func(d *delays) { d.embed += delay }, "embed retrieval ttft total"},
		{"dense search", func(d *delays) { d.dense += delay }, "dense retrieval ttft total"},
		{"lexical search", func(d *delays) { d.lexical += delay }, "lexical retrieval ttft total"},
		{"fusion", func(d *delays) { d.fuse += delay }, "fuse retrieval ttft total"},
		{"scorer", func(d *delays) { d.rerank += delay }, "rerank ttft total"},
		{"busy engine", func(d *delays) { d.busy = submitted + delay }, "queue llm_ttft ttft total"},
		{"prefill", func(d *delays) { d.prefill += delay }, "prefill llm_ttft ttft total"},
		{"decode", func(d *delays) { d.firstDecode = delay }, "decode total"},
		{"client, at the end", func(d *delays) { d.last = delay }, "other total"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := usual()
			c.put(&d)
			after := ledger(askOver(t, d))
			for name, was := range ledger(before) {
				want := time.Duration(0)
				if strings.Contains(" "+c.moves+" ", " "+name+" ") {
					want = delay
				}
				if got := after[name] - was; (got - want).Abs() > time.Microsecond {
					t.Errorf("%s moved by %v, want %v", name, got, want)
				}
			}
		})
	}
}

// TestRetrievalIsWallTime: dense and lexical search run side by side, so a delay in the
// shorter one moves that one by all of it, and retrieval by what goes beyond the longer.
func TestRetrievalIsWallTime(t *testing.T) {
	const longer = 8 * time.Millisecond // dense than lexical
	unequal := usual()
	unequal.dense += longer
	before := ledger(askOver(t, unequal))
	for _, delay := range []time.Duration{longer / 2, longer, 250 * time.Millisecond} {
		d := unequal
		d.lexical += delay
		after := ledger(askOver(t, d))
		for name, was := range before {
			want := time.Duration(0)
			switch name {
			case "lexical":
				want = delay
			case "retrieval", "ttft", "total":
				want = delay - longer
			}
			if got := after[name] - was; (got - max(0, want)).Abs() > time.Microsecond {
				t.Errorf("delayed by %v: %s moved by %v, want %v", delay, name, got, max(0, want))
			}
		}
	}
}

// TestSlowClientHoldsUpNobody: while a client takes its time the engine goes on,
// so only what the client adds beyond the engine's work is charged, to no stage.
func TestSlowClientHoldsUpNobody(t *testing.T) {
	const delay = 250 * time.Millisecond
	before := askOver(t, usual())
	d := usual()
	d.sources = delay
	after := askOver(t, d)
	engine := time.Duration(0)
	for _, s := range []telemetry.Stage{telemetry.StageQueue, telemetry.StagePrefill, telemetry.StageDecode} {
		if after.Stage(s) != before.Stage(s) {
			t.Errorf("%s took %v, with a slow client %v", s, before.Stage(s), after.Stage(s))
		}
		engine += after.Stage(s)
	}
	if got := after.Other() - before.Other(); got != delay-engine {
		t.Errorf("other moved by %v, want %v less the engine's %v", got, delay, engine)
	}
}

// TestFirstTokenIsTheClients: the time to the first token is the client's own, from
// arrival, with the queue shown apart; a plain answer has the time at which its first
// text was there, never the total; times that did not happen are null.
func TestFirstTokenIsTheClients(t *testing.T) {
	word := func(text string) func([]int32) int32 {
		prompt := 0
		return func(tokens []int32) int32 {
			if prompt == 0 {
				prompt = len(tokens)
			}
			return enginetest.Reciter(prompt, text)(tokens)
		}
	}
	u := usual()
	before := u.embed + u.dense + u.fuse + u.rerank
	for _, c := range []struct {
		name, request string
		put           func(d *delays)
		ttft, tpot    time.Duration // 0 for null
	}{
		{"streamed", `"stream":true`, func(*delays) {}, before + u.prefill, u.decode},
		{"plain", `"stream":false`, func(*delays) {}, before + u.prefill, u.decode},
		{"streamed behind another", `"stream":true`, func(d *delays) { d.busy = time.Second }, time.Second + u.prefill, u.decode},
		{"plain behind another", `"stream":false`, func(d *delays) { d.busy = time.Second }, time.Second + u.prefill, u.decode},
		{"one token", `"stream":true,"budget":{"answer_tokens":1}`, func(*delays) {}, before + u.prefill, 0},
		{"one token, plain", `"budget":{"answer_tokens":1}`, func(*delays) {}, before + u.prefill, 0},
		{"no text", `"stream":true`, func(d *delays) { d.next = word("") }, 0, 0},
		{"no text, plain", `"stream":false`, func(d *delays) { d.next = word("") }, 0, 0},
		// "xy" may become the stop text and is held back until it does not.
		{"held back", `"stream":true,"sampling":{"stop":["xyz"]}`, func(d *delays) { d.next = word("xyab") }, before + u.prefill + 2*u.decode, u.decode},
		{"all held back", `"stream":true,"sampling":{"stop":["xyz"]}`, func(d *delays) { d.next = word("xyz") }, 0, u.decode},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := usual()
				c.put(&d)
				handler, e := road(t, &d)
				defer func() {
					if err := e.Close(context.Background()); err != nil {
						t.Error(err)
					}
				}()
				if d.busy > 0 {
					occupy(t, e, &d)
				}
				client := &slowClient{ResponseRecorder: httptest.NewRecorder(), d: &d}
				arrived := time.Now()
				handler.ServeHTTP(client, httptest.NewRequest(http.MethodPost, "/ask", strings.NewReader(`{"question":"Which lamp is violet?",`+c.request+`}`)))
				data := client.Body.String()
				if _, event, ok := strings.Cut(data, "event: done\ndata: "); ok {
					data = event
				}
				var res answer.Result
				if err := json.Unmarshal([]byte(data), &res); err != nil {
					t.Fatalf("%v: %s", err, client.Body)
				}
				if res.Answer == "" && client.Code != http.StatusOK || res.Usage.OutputTokens == 0 {
					t.Fatalf("answered %d %s", client.Code, client.Body)
				}
				got := res.Timings
				if got.TTFT != c.ttft || got.TPOT != c.tpot {
					t.Errorf("ttft %v, tpot %v, want %v and %v", got.TTFT, got.TPOT, c.ttft, c.tpot)
				}
				if client.deltas > 0 && got.TTFT != client.first.Sub(arrived) {
					t.Errorf("ttft %v, the client has %v", got.TTFT, client.first.Sub(arrived))
				}
				if got.TTFT == got.Total && c.tpot > 0 {
					t.Error("the first token is the total")
				}
				if d.busy > 0 && (got.Stage(telemetry.StageQueue) != d.busy-before || got.TTFT < got.Stage(telemetry.StageQueue)) {
					t.Errorf("queue %v of a ttft of %v", got.Stage(telemetry.StageQueue), got.TTFT)
				}
				if n := time.Duration(res.Usage.OutputTokens); n >= 2 && got.Stage(telemetry.StageDecode)/(n-1) != got.TPOT {
					t.Errorf("tpot %v of %d tokens in %v", got.TPOT, n, got.Stage(telemetry.StageDecode))
				}
			})
		})
	}
}
