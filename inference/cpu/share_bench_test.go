package cpu_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"ragd/inference/cpu"
	"ragd/inference/encode"
	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/internal/testenv"
)

// The road of a question alone and, in turn, beside passages that are embedded on
// the same pool without a pause: the time to the first token (the question's
// embedding with multilingual-e5-small, 512 tokens of prompt with SmolLM2), the
// rate of decoding, and how much slower they got. Medians over the iterations;
// -benchtime 10x or more.
func BenchmarkAnswersBesideIngest(b *testing.B) {
	pool, err := cpu.NewPool(0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { pool.Close() })
	answers := newAnswers(b, cpu.Config{Pool: pool})
	ingest := newIngest(b, cpu.Config{Pool: pool, Background: true})
	answers.questions = ingest.encoder
	figures := map[string][]float64{}
	note := func(name string, v float64) { figures[name] = append(figures[name], v) }
	for b.Loop() {
		alone := answers.measure(b)
		note("embed-alone-tok/s", ingest.measure())
		ingest.start()
		beside := answers.measure(b)
		ingest.stop()
		note("ttft-alone-ms", alone.firstToken)
		note("ttft-beside-ms", beside.firstToken)
		note("ttft-slowdown", beside.firstToken/alone.firstToken)
		note("decode-alone-tok/s", alone.decode)
		note("decode-beside-tok/s", beside.decode)
		note("decode-slowdown", alone.decode/beside.decode)
	}
	for name, values := range figures {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
}

type answers struct {
	*model.Llama
	questions *encode.Encoder
	blocks    []int32
	tokens    []int32
}

type speed struct {
	firstToken float64 // milliseconds
	decode     float64 // tokens a second
}

func newAnswers(b *testing.B, cfg cpu.Config) *answers {
	ops, err := cpu.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	f, err := gguf.Open(testenv.Model(b, "smollm2-135m-instruct"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	const blocks = 40
	m, err := model.LoadDecoder(context.Background(), f, ops, model.LoadConfig{Blocks: blocks})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	a := &answers{Llama: m}
	for i := range blocks {
		a.blocks = append(a.blocks, int32(i))
	}
	for i := range 512 {
		a.tokens = append(a.tokens, int32(i*7919%48000+100))
	}
	return a
}

// measure embeds a question and runs a prompt, and 32 tokens one by one after it.
func (a *answers) measure(b *testing.B) (s speed) {
	run := func(tokens []int32, start int) {
		if _, err := a.Forward(model.Batch{{Tokens: tokens, Start: start, Blocks: a.blocks, Logits: 1}}); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	if _, _, err := a.questions.EmbedQuery(context.Background(), "Who writes down the ships that enter?"); err != nil {
		b.Fatal(err)
	}
	run(a.tokens, 0)
	s.firstToken = time.Since(began).Seconds() * 1e3
	const n = 32
	began = time.Now()
	for i := range n {
		run(a.tokens[i:i+1], len(a.tokens)+i)
	}
	s.decode = n / time.Since(began).Seconds()
	return s
}

type ingest struct {
	b       *testing.B
	encoder *encode.Encoder
	texts   []string
	cancel  context.CancelFunc
	done    chan struct{}
}

// newIngest prepares passages that fill one pass of 512 tokens.
func newIngest(b *testing.B, cfg cpu.Config) *ingest {
	ops, err := cpu.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	e, err := encode.Open(context.Background(), testenv.Model(b, "multilingual-e5-small"), ops, encode.Config{Urgency: func(urgent bool) { ops.SetBackground(!urgent) }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	in := &ingest{b: b, encoder: e}
	for range 4 {
		in.texts = append(in.texts, strings.Repeat("The clerk writes down every ship that enters. ", 10))
	}
	return in
}

// measure embeds the passages once and returns tokens a second.
func (in *ingest) measure() float64 {
	began := time.Now()
	results, err := in.encoder.EmbedPassages(context.Background(), in.texts)
	if err != nil {
		in.b.Error(err)
	}
	tokens := 0
	for i := range results {
		tokens += results[i].Tokens
	}
	return float64(tokens) / time.Since(began).Seconds()
}

// start embeds without a pause until stop.
func (in *ingest) start() {
	var ctx context.Context
	ctx, in.cancel = context.WithCancel(context.Background())
	in.done = make(chan struct{})
	go func() {
		defer close(in.done)
		for ctx.Err() == nil {
			in.measure()
		}
	}()
}

func (in *ingest) stop() {
	in.cancel()
	<-in.done
}
