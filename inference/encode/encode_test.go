package encode_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/encode"
	"ragd/inference/encode/encodetest"
	"ragd/internal/testenv"
)

// golden is a text with the ids the vector was computed from, by
// inference/model/testdata/reference.py.
type golden struct {
	Text   string
	Tokens []int32
	Vector []float32
}

func readGolden(t *testing.T, name string) []golden {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []golden }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatalf("%s holds no cases", name)
	}
	return file.Cases
}

func open(t testing.TB, name string, cfg cpu.Config, enc encode.Config) *encode.Encoder {
	t.Helper()
	ops, err := cpu.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := encode.Open(context.Background(), testenv.Model(t, name), ops, enc)
	if err != nil {
		ops.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func TestAgainstReference(t *testing.T) {
	for _, c := range []struct {
		model, golden string
		cfg           cpu.Config
		least         float64
	}{
		{"multilingual-e5-small", "e5_golden.json", cpu.Config{Float32: true}, 0.999999},
		{"multilingual-e5-small", "e5_golden.json", cpu.Config{}, 0.99993},
		{"all-minilm-l6-v2", "minilm_golden.json", cpu.Config{}, 0.999999},
	} {
		t.Run(c.golden, func(t *testing.T) {
			e := open(t, c.model, c.cfg, encode.Config{})
			worst := 1.0
			for _, g := range readGolden(t, c.golden) {
				v, tokens := embed(t, e, g.Text)
				if tokens != len(g.Tokens) {
					t.Errorf("%q: %d tokens, reference %d", g.Text, tokens, len(g.Tokens))
				}
				cos := cosine(v, g.Vector)
				worst = min(worst, cos)
				if cos < c.least {
					t.Errorf("%q: cosine %.7f", g.Text, cos)
				}
				if norm := cosine(v, v); math.Abs(norm-1) > 1e-6 {
					t.Errorf("%q: norm %g", g.Text, norm)
				}
			}
			t.Logf("least cosine %.7f", worst)
		})
	}
}

// embed sends a golden text the way its prefix says.
func embed(t *testing.T, e *encode.Encoder, text string) ([]float32, int) {
	t.Helper()
	if q, ok := strings.CutPrefix(text, "query: "); ok {
		v, n, err := e.EmbedQuery(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		return v, n
	}
	p := strings.TrimPrefix(text, "passage: ")
	r, err := e.EmbedPassages(context.Background(), []string{p})
	if err != nil {
		t.Fatal(err)
	}
	if n := e.CountPassage(p); n != r[0].Tokens {
		t.Errorf("%q: counted %d tokens, given %d", p, n, r[0].Tokens)
	}
	return r[0].Vector, r[0].Tokens
}

// A text's vector is the same bits whatever the batch around it.
func TestBatchesDoNotMatter(t *testing.T) {
	alone := open(t, "all-minilm-l6-v2", cpu.Config{Threads: 1}, encode.Config{BatchTokens: 1})
	packed := open(t, "all-minilm-l6-v2", cpu.Config{Threads: 2}, encode.Config{BatchTokens: 100})
	texts := []string{"short", "", "a somewhat longer text about harbours and their books", "short", " \u200b\n", strings.Repeat("tide ", 400), "last one"}
	a, errA := alone.EmbedPassages(context.Background(), texts)
	b, errB := packed.EmbedPassages(context.Background(), texts)
	if errA == nil || errB == nil || errA.Error() != errB.Error() {
		t.Fatalf("errors differ: %v, %v", errA, errB)
	}
	for i := range texts {
		if (a[i].Err != nil) != (i == 1 || i == 4 || i == 5) {
			t.Errorf("text %d: %v", i, a[i].Err)
		}
		for j := range a[i].Vector {
			if a[i].Vector[j] != b[i].Vector[j] {
				t.Fatalf("text %d, value %d: %g alone, %g in a batch", i, j, a[i].Vector[j], b[i].Vector[j])
			}
		}
	}
	if !errors.Is(a[1].Err, encode.ErrBlank) || !errors.Is(a[4].Err, encode.ErrBlank) {
		t.Errorf("blank texts: %v, %v", a[1].Err, a[4].Err)
	}
	var long *encode.TextError
	if !errors.As(a[5].Err, &long) || !errors.Is(long, encode.ErrTooLong) || long.Index != 5 || long.Tokens != 402 || long.Max != 256 {
		t.Errorf("long text: %+v", long)
	}
	if a[5].Vector != nil {
		t.Error("a long text was cut")
	}
}

func TestCancelledBetweenBatches(t *testing.T) {
	e := open(t, "all-minilm-l6-v2", cpu.Config{Threads: 1}, encode.Config{BatchTokens: 8})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.EmbedPassages(ctx, []string{"one", "two"}); !errors.Is(err, context.Canceled) {
		t.Errorf("passages: %v", err)
	}
	if _, _, err := e.EmbedQuery(ctx, "one"); !errors.Is(err, context.Canceled) {
		t.Errorf("query: %v", err)
	}
	if _, _, err := e.EmbedQuery(context.Background(), "one"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// The backend is told who waits for it.
func TestUrgencyIsTold(t *testing.T) {
	var told []bool
	cfg := encode.Config{Urgency: func(urgent bool) { told = append(told, urgent) }}
	e := open(t, "all-minilm-l6-v2", cpu.Config{Threads: 1}, cfg)
	_, passages := e.EmbedPassages(context.Background(), []string{"one"})
	_, _, query := e.EmbedQuery(context.Background(), "one")
	c := mustOpenCross(t, encodetest.Model{Family: encodetest.BERT}, cfg) // tries itself on a pair
	_, pairs := c.ScorePairs(context.Background(), "boat", []string{"blue"})
	if err := errors.Join(passages, query, pairs); err != nil {
		t.Fatal(err)
	}
	if want := []bool{false, true, true, true}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

func TestConcurrentCallers(t *testing.T) {
	e := open(t, "all-minilm-l6-v2", cpu.Config{Threads: 2}, encode.Config{BatchTokens: 16})
	want, _, err := e.EmbedQuery(context.Background(), "who keeps the books")
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 3 {
				got, _, err := e.EmbedQuery(context.Background(), "who keeps the books")
				if err != nil || cosine(got, want) < 0.9999999 {
					t.Errorf("%v, cosine %g", err, cosine(got, want))
				}
			}
		})
		group.Go(func() {
			if _, err := e.EmbedPassages(context.Background(), []string{"the clerk", "a ship", "the port"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestClosed(t *testing.T) {
	e := open(t, "all-minilm-l6-v2", cpu.Config{Threads: 1}, encode.Config{})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.EmbedQuery(context.Background(), "late"); !errors.Is(err, encode.ErrClosed) {
		t.Errorf("late query: %v", err)
	}
	if err := e.Close(); !errors.Is(err, encode.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	ops, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer ops.Close()
	dir := t.TempDir()
	short := filepath.Join(dir, "short.gguf")
	if err := os.WriteFile(short, []byte("GGUF123456"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "missing.gguf"), short, dir, testenv.Model(t, "smollm2-135m-instruct")} {
		_, err := encode.Open(context.Background(), path, ops, encode.Config{})
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error does not name it: %v", path, err)
		}
	}
}
