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

// Prefill and decode of SmolLM2 alone and beside multilingual-e5-small embedding
// passages on the same pool, in turn: tokens a second and alone by beside. Medians over the
// iterations; -benchtime 10x or more.
func BenchmarkAnswersBesideIngest(b *testing.B) {
	pool, err := cpu.NewPool(0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { pool.Close() })
	answers := newAnswers(b, cpu.Config{Pool: pool})
	ingest := newIngest(b, cpu.Config{Pool: pool, Background: true})
	figures := map[string][]float64{}
	note := func(name string, v float64) { figures[name] = append(figures[name], v) }
	for b.Loop() {
		alone := answers.measure(b)
		note("embed-alone-tok/s", ingest.measure())
		ingest.start()
		beside := answers.measure(b)
		ingest.stop()
		note("pp-alone-tok/s", alone.prefill)
		note("pp-beside-tok/s", beside.prefill)
		note("pp-slowdown", alone.prefill/beside.prefill)
		note("tg-alone-tok/s", alone.decode)
		note("tg-beside-tok/s", beside.decode)
		note("tg-slowdown", alone.decode/beside.decode)
	}
	for name, values := range figures {
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
	}
}

type answers struct {
	*model.Llama
	blocks []int32
	tokens []int32
}

type rates struct{ prefill, decode float64 } // tokens a second

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
	const blocks = 20
	m, err := model.LoadDecoder(context.Background(), f, ops, model.LoadConfig{Blocks: blocks})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	a := &answers{Llama: m}
	for i := range blocks {
		a.blocks = append(a.blocks, int32(i))
	}
	for i := range 256 {
		a.tokens = append(a.tokens, int32(i*7919%48000+100))
	}
	return a
}

// measure runs a prompt of 256 tokens and 32 tokens one by one after it.
func (a *answers) measure(b *testing.B) (r rates) {
	run := func(tokens []int32, start int) {
		if _, err := a.Forward(model.Batch{{Tokens: tokens, Start: start, Blocks: a.blocks, Logits: 1}}); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	run(a.tokens, 0)
	r.prefill = float64(len(a.tokens)) / time.Since(began).Seconds()
	const n = 32
	began = time.Now()
	for i := range n {
		run(a.tokens[i:i+1], len(a.tokens)+i)
	}
	r.decode = n / time.Since(began).Seconds()
	return r
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
	e, err := encode.Open(context.Background(), testenv.Model(b, "multilingual-e5-small"), ops, encode.Config{})
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
