package engine_test

import (
	"errors"
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
	whole, best, fetched int // steps of each kind, and rows
	refuse               error
	rows                 [][]float32
}

func (c *choosing) MaxBest() int { return sample.MaxBest }

func (c *choosing) Forward(b model.Batch) ([][]float32, error) {
	c.whole++
	return c.Decoder.Forward(b)
}

func (c *choosing) ForwardBest(b model.Batch, k int, choices []model.Choice) ([]model.Best, error) {
	c.best++
	rows, err := c.Decoder.Forward(b)
	c.rows = rows
	var out []model.Best
	for i, r := range rows {
		out = append(out, bestOf(r, k, choices[i]))
	}
	return out, err
}

func (c *choosing) BestRow(row int) ([]float32, error) {
	c.fetched++
	return c.rows[row], c.refuse
}

// bestOf is the largest logits of a row as a choice has them penalised.
func bestOf(row []float32, k int, c model.Choice) model.Best {
	penalised := slices.Clone(row)
	for _, id := range c.Seen {
		if v := row[id]; v > 0 {
			penalised[id] = v / c.Penalty
		} else {
			penalised[id] = v * c.Penalty
		}
	}
	ids := make([]int32, len(row))
	for i := range ids {
		ids[i] = int32(i)
	}
	sort.SliceStable(ids, func(i, j int) bool { return penalised[ids[i]] > penalised[ids[j]] })
	best := model.Best{IDs: ids[:min(k, len(ids))], LogSum: logSum(row)}
	for _, id := range best.IDs {
		best.Logits, best.Raw = append(best.Logits, penalised[id]), append(best.Raw, row[id])
	}
	for _, v := range penalised {
		best.Sum += math.Exp(float64((v - best.Logits[0]) * c.Scale))
	}
	return best
}

// Answers are the same, word and confidence, whether a decoder tells all logits or the
// largest; a whole row is asked for only where a draw needs it. Drafts are checked on the
// way, each row with the penalties of those before it.
func TestBestLogitsGiveTheSameAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		p       sample.Params
		fetches bool
	}{
		{"greedy", sample.Params{}, false},
		{"top-k", sample.Params{Temperature: 1, TopK: 20, TopP: .9, Seed: 5}, false},
		{"temperature", sample.Params{Temperature: 1, Seed: 5}, true},
		{"top-p", sample.Params{Temperature: .3, TopP: .9, Seed: 5}, false},
		{"min-p", sample.Params{Temperature: .5, MinP: .1, Seed: 5}, false},
		{"penalty", sample.Params{RepetitionPenalty: 1.3}, false},
		{"all of it", sample.Params{Temperature: 1.2, TopP: .97, RepetitionPenalty: 1.1, Seed: 5}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := engine.Request{Tokens: prompt("abcabcab"), MaxTokens: 80, IgnoreEOS: true, Confidence: true, Sampling: c.p}
			dec := &choosing{Decoder: enginetest.NewDecoder(64, 512)}
			got := answerOf(t, dec, r)
			want := answerOf(t, enginetest.NewDecoder(64, 512), r)
			if !slices.Equal(got.tokens, want.tokens) {
				t.Errorf("tokens %v, want %v", got.tokens, want.tokens)
			}
			if d := got.done.Confidence.Mean - want.done.Confidence.Mean; d > 1e-4 || d < -1e-4 {
				t.Errorf("confidence %g, want %g", got.done.Confidence.Mean, want.done.Confidence.Mean)
			}
			t.Logf("%d steps, %d rows fetched", dec.best, dec.fetched)
			if dec.best == 0 || dec.whole > 0 || c.fetches != (dec.fetched > 0) || dec.fetched > len(got.tokens)/2 {
				t.Errorf("%d steps told the best logits, %d all; %d rows were fetched", dec.best, dec.whole, dec.fetched)
			}
		})
	}
}

// Rows after drafted tokens are penalised for these, too.
func TestDraftsAndPenalties(t *testing.T) {
	r := engine.Request{Tokens: prompt("abcdefghijklmnop abcdefgh"), MaxTokens: 60, IgnoreEOS: true, Sampling: sample.Params{Temperature: .6, RepetitionPenalty: 1.2, Seed: 3}}
	next := func(tokens []int32) int32 { return 'a' + int32(len(tokens))%16 }
	dec := &choosing{Decoder: enginetest.NewDecoder(64, 512)}
	plain := enginetest.NewDecoder(64, 512)
	dec.Next, plain.Next = next, next
	got, want := answerOf(t, dec, r), answerOf(t, plain, r)
	if !slices.Equal(got.tokens, want.tokens) {
		t.Errorf("tokens %v, want %v", got.tokens, want.tokens)
	}
	if got.done.Usage.AcceptedTokens < 8 {
		t.Errorf("%d drafted tokens were accepted, so that little was tried", got.done.Usage.AcceptedTokens)
	}
}

// An answer that needs whole rows goes on beside one that does not; when a row cannot be
// fetched, the answer that needs it fails and the other one does not notice.
func TestRowsAreFetched(t *testing.T) {
	vocabulary := sample.NewVocabulary(enginetest.Vocabulary, enginetest.Tokenizer{}.Piece, []int32{enginetest.EOS})
	for _, refuse := range []error{nil, errors.New("the row is gone")} {
		dec := &choosing{Decoder: enginetest.NewDecoder(64, 512), refuse: refuse}
		dec.Before = slowly
		inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
			json, plain := request("one", 30), request("two", 30)
			json.Sampling.Grammar = sample.NewJSON(vocabulary, enginetest.Tokenizer{}.Piece)
			first, second := submit(t, e, json), submit(t, e, plain)
			a, b := readAll(t, first), readAll(t, second)
			if (a.failed.Err != nil) != (refuse != nil) || !errors.Is(a.failed.Err, refuse) {
				t.Errorf("the answer that needs rows: %v, want %v", a.failed.Err, refuse)
			}
			if b.done.Reason != engine.ReasonLength || len(b.tokens) != 30 {
				t.Errorf("the other answer: %+v", b)
			}
			if st := e.Stats(); st.FetchedRows != int64(dec.fetched) || dec.fetched == 0 || dec.best == 0 {
				t.Errorf("%d rows counted, %d fetched in %d steps", st.FetchedRows, dec.fetched, dec.best)
			}
		})
	}
}

// More tokens than a row may have penalised are penalised here.
func TestManyPenalisedTokens(t *testing.T) {
	dec := &choosing{Decoder: enginetest.NewDecoder(128, 512)}
	wide := widened{dec, make([]float32, 3*model.MaxPenalised)}
	e, err := engine.New(wide, enginetest.Tokenizer{}, engine.Config{NoLookup: true})
	if err != nil {
		t.Fatal(err)
	}
	r := engine.Request{Tokens: prompt("q"), MaxTokens: model.MaxPenalised + 20, IgnoreEOS: true, Sampling: sample.Params{RepetitionPenalty: 10}}
	a := run(t, e, r)
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for i, id := range a.tokens {
		if id != int32(len(wide.row)-1-i) {
			t.Fatalf("token %d is %d: not the largest that was not drawn yet", i, id)
		}
	}
	if dec.best != model.MaxPenalised+1 || dec.whole != 19 || dec.fetched > 0 {
		t.Errorf("%d steps told the largest logits, %d all", dec.best, dec.whole)
	}
}

// widened is a decoder of more tokens, of which higher ids are likelier.
type widened struct {
	*choosing
	row []float32
}

func (w widened) Config() model.Config {
	c := w.choosing.Config()
	c.Vocab, c.Context = len(w.row), 0
	return c
}

func (w widened) Forward(b model.Batch) ([][]float32, error) {
	w.whole++
	return w.rows(b), nil
}

func (w widened) ForwardBest(b model.Batch, k int, choices []model.Choice) ([]model.Best, error) {
	w.best++
	var out []model.Best
	for i, r := range w.rows(b) {
		out = append(out, bestOf(r, k, choices[i]))
	}
	return out, nil
}

func (w widened) rows(b model.Batch) (rows [][]float32) {
	for i := range w.row {
		w.row[i] = 5 + float32(i)/float32(len(w.row))
	}
	for range b[0].Logits {
		rows = append(rows, w.row)
	}
	return rows
}

// answerOf is an answer of an engine of its own.
func answerOf(t *testing.T, dec model.Decoder, r engine.Request) answer {
	t.Helper()
	e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	a := readAll(t, submit(t, e, r))
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return a
}

func logSum(row []float32) float64 {
	sum := 0.0
	for _, v := range row {
		sum += math.Exp(float64(v))
	}
	return math.Log(sum)
}
