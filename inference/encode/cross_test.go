package encode_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/encode"
	"ragd/inference/encode/encodetest"
	"ragd/inference/model"
	"ragd/inference/quant"
	"ragd/internal/testenv"
)

func openCross(t testing.TB, path string, cfg encode.Config) (*encode.CrossEncoder, error) {
	t.Helper()
	ops, err := cpu.New(cpu.Config{Threads: 1, Float32: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := encode.OpenCross(context.Background(), path, ops, cfg)
	if err != nil {
		return nil, errors.Join(err, ops.Close())
	}
	t.Cleanup(func() { c.Close() })
	return c, nil
}

func mustOpenCross(t testing.TB, m encodetest.Model, cfg encode.Config) *encode.CrossEncoder {
	t.Helper()
	c, err := openCross(t, encodetest.Write(t, m), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// raw says that a folder's scores are taken as they are.
var raw = map[string]any{"sentence_transformers": map[string]any{"activation_fn": "torch.nn.modules.linear.Identity"}}

// Both families in both containers give the reference's scores for each pair.
func TestScoresAgainstReference(t *testing.T) {
	for _, m := range []encodetest.Model{
		{Family: encodetest.BERT},
		{Family: encodetest.BERT, Folder: true, Config: raw},
		{Family: encodetest.BERT, Head: encodetest.DirectHead},
		{Family: encodetest.XLMRoBERTa},
		{Family: encodetest.XLMRoBERTa, Folder: true, Config: raw},
		{Family: encodetest.XLMRoBERTa, Head: encodetest.DirectHead},
	} {
		c := mustOpenCross(t, m, encode.Config{})
		if c.Whole() != (m.Head == encodetest.FullHead) {
			t.Errorf("%+v: whole is %v", m, c.Whole())
		}
		for _, want := range encodetest.Cases(t, m.Family) {
			got, err := c.ScorePairs(context.Background(), want.Question, []string{want.Passage})
			if err != nil {
				t.Fatalf("%+v: %q: %v", m, want.Question, err)
			}
			// llama.cpp approximates GELU by tanh and looks it up in half precision.
			if want.Llama != 0 && math.Abs(float64(want.Llama-want.Score)) > 3e-3 {
				t.Errorf("%q: the references differ, %g and %g", want.Question, want.Score, want.Llama)
			}
			score := want.Score
			if m.Head == encodetest.DirectHead {
				score = want.Direct
			}
			if got[0].Tokens != len(want.Tokens) || got[0].Cut != want.Cut || math.Abs(float64(got[0].Score-score)) > 2e-5 {
				t.Errorf("%+v: %q, %q: %+v, want %d tokens, %d cut, score %g", m, want.Question, want.Passage, got[0], len(want.Tokens), want.Cut, score)
			}
		}
	}
}

// A folder that names no activation has scores between 0 and 1.
func TestSigmoid(t *testing.T) {
	for name, config := range map[string]map[string]any{
		"default": nil,
		"named":   {"sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"},
	} {
		c := mustOpenCross(t, encodetest.Model{Family: encodetest.XLMRoBERTa, Folder: true, Config: config}, encode.Config{})
		want := encodetest.Cases(t, encodetest.XLMRoBERTa)[0]
		got, err := c.ScorePairs(context.Background(), want.Question, []string{want.Passage})
		if err != nil {
			t.Fatal(err)
		}
		if squeezed := 1 / (1 + math.Exp(-float64(want.Score))); math.Abs(float64(got[0].Score)-squeezed) > 1e-5 {
			t.Errorf("%s: score %g, want %g", name, got[0].Score, squeezed)
		}
	}
}

// A pair's score is the same bits whatever pairs are scored with it.
func TestPairsDoNotFeelTheirBatch(t *testing.T) {
	m := encodetest.Model{Family: encodetest.BERT}
	packed, alone := mustOpenCross(t, m, encode.Config{}), mustOpenCross(t, m, encode.Config{BatchTokens: 1})
	passages := []string{"", "ten tonnes", strings.Repeat("the boat is blue ", 30), "the crane lifts"}
	a, errA := packed.ScorePairs(context.Background(), "how much", passages)
	b, errB := alone.ScorePairs(context.Background(), "how much", passages)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("passage %d: %+v together, %+v alone", i, a[i], b[i])
		}
	}
	if a[2].Cut == 0 || a[2].Tokens != packed.MaxTokens() {
		t.Errorf("long passage: %+v", a[2])
	}
}

func TestQuestionsThatCannotBeScored(t *testing.T) {
	c := mustOpenCross(t, encodetest.Model{Family: encodetest.XLMRoBERTa}, encode.Config{})
	long := strings.Repeat("crane ", encodetest.Context-15)
	for question, want := range map[string]error{" \u200b\n": encode.ErrBlank, long: encode.ErrTooLong} {
		if r, err := c.ScorePairs(context.Background(), question, []string{strings.Repeat("boat ", 20)}); r != nil || !errors.Is(err, want) {
			t.Errorf("%q: %v, %v", question, r, err)
		}
	}
	if r, err := c.ScorePairs(context.Background(), "boat", nil); len(r) != 0 || err != nil {
		t.Errorf("no passages: %v, %v", r, err)
	}
}

func TestCancelledPairs(t *testing.T) {
	c := mustOpenCross(t, encodetest.Model{Family: encodetest.BERT}, encode.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.ScorePairs(ctx, "boat", []string{"blue"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ScorePairs(context.Background(), "boat", []string{"blue"}); !errors.Is(err, encode.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// What is no reranker, or is broken, is refused when it is opened.
func TestOpenCrossRefuses(t *testing.T) {
	bert := encodetest.Model{Family: encodetest.BERT}
	folder := func(config map[string]any) string {
		return encodetest.Write(t, encodetest.Model{Family: encodetest.BERT, Folder: true, Config: config})
	}
	for name, c := range map[string]struct {
		path string
		want error
		text string
	}{
		"no head":        {encodetest.Write(t, encodetest.Model{Family: encodetest.BERT, Head: encodetest.NoHead}), encode.ErrNoHead, "no classification head"},
		"no head dir":    {encodetest.Write(t, encodetest.Model{Family: encodetest.XLMRoBERTa, Head: encodetest.NoHead, Folder: true}), encode.ErrNoHead, "no classification head"},
		"two outputs":    {encodetest.Write(t, encodetest.Model{Family: encodetest.BERT, Labels: 2}), encode.ErrNoHead, "2 outputs"},
		"activation":     {folder(map[string]any{"sbert_ce_default_activation_function": "torch.nn.Tanh"}), model.ErrConfig, "torch.nn.Tanh"},
		"half a file":    {cut(t, encodetest.Write(t, bert), 40000), nil, "has 40000"},
		"half a folder":  {filepath.Dir(cut(t, filepath.Join(folder(nil), "model.safetensors"), 30000)), nil, "has 30000"},
		"an embedder":    {testenv.Model(t, "multilingual-e5-small"), encode.ErrNoHead, "no classification head"},
		"not an encoder": {testenv.Model(t, "smollm2-135m-instruct"), nil, "unknown model architecture"},
	} {
		_, err := openCross(t, c.path, encode.Config{})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.path) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: error %v, want %v with %q and the path", name, err, c.want, c.text)
		}
	}
}

func cut(t *testing.T, path string, size int64) string {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return path
}

// A model whose scores are no numbers is found when it is opened.
func TestOpenCrossTriesTheModel(t *testing.T) {
	dir := encodetest.Write(t, encodetest.Model{Family: encodetest.XLMRoBERTa, Folder: true})
	path := filepath.Join(dir, "model.safetensors")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(data[len(data)-4:], math.Float32bits(float32(math.NaN()))) // the last bias
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openCross(t, dir, encode.Config{}); !errors.Is(err, encode.ErrNotFinite) || !strings.Contains(err.Error(), dir) {
		t.Errorf("error %v", err)
	}
}

// A pair is as long as the model's positions and its tokenizer's limit allow.
func TestMaxTokens(t *testing.T) {
	for content, want := range map[string]int{"{}": encodetest.Context, `{"model_max_length": 30}`: 30, `{"model_max_length": 1e30}`: encodetest.Context} {
		dir := encodetest.Write(t, encodetest.Model{Family: encodetest.BERT, Folder: true})
		if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := openCross(t, dir, encode.Config{})
		if err != nil {
			t.Fatal(err)
		}
		scores, err := c.ScorePairs(context.Background(), "boat", []string{strings.Repeat("blue ", 100)})
		if err != nil || c.MaxTokens() != want || scores[0].Tokens != want || scores[0].Cut != 104-want {
			t.Errorf("%s: at most %d tokens, %+v (%v)", content, c.MaxTokens(), scores, err)
		}
	}
}

// A reranker makes no embeddings, which is found at start as well.
func TestRerankerIsNoEmbedder(t *testing.T) {
	ops, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer ops.Close()
	path := encodetest.Write(t, encodetest.Model{Family: encodetest.BERT})
	if _, err := encode.Open(context.Background(), path, ops, encode.Config{}); !errors.Is(err, model.ErrConfig) {
		t.Errorf("error %v", err)
	}
}

// Pairs of 30 to 230 tokens, as a chunker makes them, on a model of the size of
// MiniLM-L6 with random weights.
func BenchmarkPairs(b *testing.B) {
	for name, typ := range map[string]quant.Type{"F32": quant.F32, "Q8_0": quant.Q8_0} {
		b.Run(name, func(b *testing.B) {
			ops, err := cpu.New(cpu.Config{})
			if err != nil {
				b.Fatal(err)
			}
			path := encodetest.Write(b, encodetest.Model{Family: encodetest.BERT, Shape: encodetest.MiniLM(), Type: typ})
			c, err := encode.OpenCross(b.Context(), path, ops, encode.Config{})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			passages, tokens := make([]string, 20), 0
			for i := range passages {
				passages[i] = strings.Repeat("the crane lifts ten tonnes ", 4+4*(i%10))
			}
			for b.Loop() {
				scores, err := c.ScorePairs(b.Context(), "how much does the crane lift", passages)
				if err != nil {
					b.Fatal(err)
				}
				for _, s := range scores {
					tokens += s.Tokens
				}
			}
			b.ReportMetric(float64(len(passages)*b.N)/b.Elapsed().Seconds(), "pairs/s")
			b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tok/s")
		})
	}
}
