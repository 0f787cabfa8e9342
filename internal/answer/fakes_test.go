package answer

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"ragd/ingest"
	"ragd/prompt/chat"
	"ragd/rerank"
	"ragd/retrieve"
	"ragd/telemetry"
)

// byteTokenizer makes a token of every three bytes, and one of each control word
// in scaffold, so that counts depend on where text is cut.
type byteTokenizer struct{}

const control = int32(1 << 24)

func (byteTokenizer) Encode(dst []int32, text string) []int32 {
	for len(text) > 0 {
		n := min(3, len(text))
		id := int32(0)
		for _, b := range []byte(text[:n]) {
			id = id<<8 | int32(b)
		}
		dst, text = append(dst, id), text[n:]
	}
	return dst
}

func (t byteTokenizer) EncodeScaffold(dst []int32, text string) []int32 {
	for {
		i := strings.Index(text, "<|")
		j := strings.Index(text, "|>")
		if i < 0 || j < i {
			return t.Encode(dst, text)
		}
		dst = append(t.Encode(dst, text[:i]), control)
		text = text[j+2:]
	}
}

func (byteTokenizer) Chat(ids []int32) []int32 { return ids }

const template = `{% for m in messages %}<|start|>{{ m['role'] }}
{{ m['content'] }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|start|>assistant
{% endif %}`

type fakeEmbedder struct{ err error }

func (fakeEmbedder) Model() string { return "fake-embedder" }
func (f fakeEmbedder) EmbedQuery(context.Context, string) ([]float32, int, error) {
	return []float32{1, 0}, 3, f.err
}

type fakeRetriever struct {
	hits []retrieve.Hit
	err  error
}

func (f fakeRetriever) Retrieve(ctx context.Context, q retrieve.Query) ([]retrieve.Hit, error) {
	for _, p := range []retrieve.Part{retrieve.Dense, retrieve.Lexical, retrieve.Fuse} {
		_, end := q.Begin(ctx, p)
		end(f.err)
	}
	return f.hits[:min(q.Limit, len(f.hits))], f.err
}

// fakeGenerator answers with fixed pieces of text.
type fakeGenerator struct {
	info   ModelInfo
	pieces []string
	err    error
	// block keeps it running until the caller is gone.
	block bool
	// format is what CheckFormat says.
	format error

	// rewriting is what a follow-up question is rewritten as, and rewriteErr how that
	// fails; first is what that call was given.
	rewriting  string
	rewriteErr error
	first      *Generation

	got Generation
}

func (g *fakeGenerator) Model() ModelInfo                 { return g.info }
func (g *fakeGenerator) Pace() Pace                       { return Pace{Prefill: 1000} }
func (g *fakeGenerator) CheckFormat(ResponseFormat) error { return g.format }

func (g *fakeGenerator) Generate(ctx context.Context, req Generation, emit func(Event)) (Generated, error) {
	if slices.Equal(req.Stop, rewriteStop) {
		g.first = &req
		emit(Event{Queued: true, Position: 1})
		emit(Event{Text: g.rewriting})
		return Generated{FinishReason: "stop", OutputTokens: 5, CachedTokens: 16}, g.rewriteErr
	}
	g.got = req
	out := Generated{FinishReason: "stop", OutputTokens: len(g.pieces)}
	out.Times.Submitted = time.Now()
	if g.err != nil {
		return out, g.err
	}
	emit(Event{Queued: true, Position: 1})
	time.Sleep(time.Millisecond)
	out.Times.Scheduled = time.Now()
	time.Sleep(2 * time.Millisecond)
	out.Times.FirstToken = time.Now()
	for _, p := range g.pieces {
		emit(Event{Text: p})
		time.Sleep(time.Millisecond)
	}
	if g.block {
		<-ctx.Done()
		out.FinishReason = "cancelled"
		return out, context.Cause(ctx)
	}
	out.Times.Last = time.Now()
	out.Times.OutputTokens = len(g.pieces)
	return out, nil
}

// recordingSink keeps the events in order.
type recordingSink struct {
	trace  string
	events []string
	text   strings.Builder
}

func (s *recordingSink) Begun(traceID string) { s.trace = traceID }

func (s *recordingSink) Queued(p int) { s.events = append(s.events, fmt.Sprint("queued ", p)) }
func (s *recordingSink) Sources(v Sources) {
	s.events = append(s.events, fmt.Sprint("sources ", len(v.Presented)))
}

func (s *recordingSink) Delta(t string) {
	s.events = append(s.events, "delta")
	s.text.WriteString(t)
}

func (s *recordingSink) Citation(c Citation) {
	s.events = append(s.events, fmt.Sprint("citation ", c.Marker))
}

// rig is a service over fakes.
type rig struct {
	*Service
	gen   *fakeGenerator
	spans *tracetest.InMemoryExporter
	log   *strings.Builder
}

func newRig(t testing.TB, hits []retrieve.Hit, gen *fakeGenerator) *rig {
	t.Helper()
	if gen.info.Window == 0 {
		gen.info = ModelInfo{Name: "fake", Window: 4096}
	}
	r := &rig{gen: gen, spans: tracetest.NewInMemoryExporter(), log: &strings.Builder{}}
	tel, err := telemetry.New(context.Background(), telemetry.Config{SpanExporter: r.spans}, slog.New(slog.NewJSONHandler(r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := chat.Parse(template)
	if err != nil {
		t.Fatal(err)
	}
	reranker, err := rerank.New(rerank.BestSentence{}, rerank.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	r.Service, err = New(Deps{
		Embedder: fakeEmbedder{}, Retriever: fakeRetriever{hits: hits}, Reranker: reranker, Template: tpl,
		Tokenizer: byteTokenizer{}, Generator: gen, Telemetry: tel,
	}, Config{TopK: 20, MaxChunks: 4, ContextTokens: 1024, AnswerTokens: 64, MinConfidence: -1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// chunk is a hit whose sentences are given with their cosines.
func chunk(id int64, title string, sentences ...string) retrieve.Hit {
	h := retrieve.Hit{
		Chunk: ingest.Chunk{ID: id}, Document: retrieve.Document{ID: id, Path: title + ".md", Title: title},
		Scores: retrieve.Scores{Dense: 0.9, DensePart: 0.9, Fused: 0.9},
	}
	for i, s := range sentences {
		start := len(h.Chunk.Text)
		h.Chunk.Text += s + " "
		h.Chunk.Sentences = append(h.Chunk.Sentences, ingest.Span{Start: start, End: len(h.Chunk.Text)})
		h.SentenceVectors = append(h.SentenceVectors, []float32{0.95 - 0.03*float32(i), 0})
	}
	return h
}
