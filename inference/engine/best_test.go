package engine_test

import (
	"math"
	"slices"
	"sort"
	"testing"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
	"ragd/inference/sample"
)

// choosing is a decoder that tells the largest logits itself.
type choosing struct {
	*enginetest.Decoder
	whole, best int // steps of each kind
}

func (c *choosing) MaxBest() int { return sample.MaxBest }

func (c *choosing) Forward(b model.Batch) ([][]float32, error) {
	c.whole++
	return c.Decoder.Forward(b)
}

func (c *choosing) ForwardBest(b model.Batch, k int) ([]model.Best, error) {
	c.best++
	rows, err := c.Decoder.Forward(b)
	var out []model.Best
	for _, r := range rows {
		ids := make([]int32, len(r))
		for i := range ids {
			ids[i] = int32(i)
		}
		sort.SliceStable(ids, func(i, j int) bool { return r[ids[i]] > r[ids[j]] })
		best := model.Best{IDs: ids[:min(k, len(ids))], LogSum: logSum(r)}
		for _, id := range best.IDs {
			best.Logits = append(best.Logits, r[id])
		}
		out = append(out, best)
	}
	return out, err
}

// Answers are the same, word and confidence, whether a decoder tells all logits or the
// largest; the whole row is asked for only where a draw needs it.
func TestBestLogitsGiveTheSameAnswers(t *testing.T) {
	for _, c := range []struct {
		name string
		p    sample.Params
		best bool
	}{
		{"greedy", sample.Params{}, true},
		{"top-k", sample.Params{Temperature: 1, TopK: 20, TopP: .9, Seed: 5}, true},
		{"all", sample.Params{Temperature: 1, Seed: 5}, false},
		{"penalty", sample.Params{RepetitionPenalty: 1.3}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := engine.Request{Tokens: prompt("abcabcab"), MaxTokens: 40, IgnoreEOS: true, Confidence: true, Sampling: c.p}
			dec := &choosing{Decoder: enginetest.NewDecoder(64, 512)}
			got, gotDone := answerOf(t, dec, r)
			want, wantDone := answerOf(t, enginetest.NewDecoder(64, 512), r)
			if !slices.Equal(got, want) {
				t.Errorf("tokens %v, want %v", got, want)
			}
			if d := gotDone.Confidence.Mean - wantDone.Confidence.Mean; d > 1e-4 || d < -1e-4 {
				t.Errorf("confidence %g, want %g", gotDone.Confidence.Mean, wantDone.Confidence.Mean)
			}
			if c.best != (dec.best > 0) || c.best == (dec.whole > 0) {
				t.Errorf("%d steps told the best logits, %d all", dec.best, dec.whole)
			}
		})
	}
}

// answerOf is the tokens of an answer and its end.
func answerOf(t *testing.T, dec model.Decoder, r engine.Request) ([]int32, engine.Done) {
	t.Helper()
	e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	a := readAll(t, submit(t, e, r))
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return a.tokens, a.done
}

func logSum(row []float32) float64 {
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v))
	}
	return math.Log(sum)
}
