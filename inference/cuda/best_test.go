//go:build cuda && cgo

package cuda

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
	"ragd/inference/sample"
)

// unchanged is the choice of rows of which nothing is penalised.
func unchanged(rows int) []model.Choice {
	return slices.Repeat([]model.Choice{{Penalty: 1, Scale: 1}}, rows)
}

// bestOf chooses from rows of logits.
func bestOf(t *testing.T, logits [][]float32, k int, choices []model.Choice) []model.Best {
	t.Helper()
	b := newBackend(t)
	rows, width := len(logits), len(logits[0])
	k = min(k, width)
	begin(b, rows)
	at := b.reserve(&b.output, int64(4*rows*width))
	put(t, b, at, slices.Concat(logits...))
	all, err := b.flush(b.choose(at, rows, width, k, choices), rows*bestBytes(k))
	if err != nil {
		t.Fatal(err)
	}
	return b.readBest(all, rows, k)
}

// The largest logits come in the host's order, with ties, zeros of both signs and
// infinities, and with some penalised, for vocabularies around a chunk and beyond what
// two rounds hold.
func TestBestLogitsMatchASort(t *testing.T) {
	inBothOrders(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(25, 26))
		for _, width := range []int{1, 5, 1023, 1025, 20000} {
			for _, k := range []int{1, 64} {
				logits := make([][]float32, 3)
				for r := range logits {
					logits[r] = random(rng, width)
					for i := range logits[r] {
						logits[r][i] = float32(math.Round(float64(logits[r][i])*8)) / 8
					}
				}
				logits[1][0] = float32(math.Copysign(0, -1))
				logits[2][width-1] = float32(math.Inf(-1))
				choices := []model.Choice{
					{Penalty: 1.1, Scale: 1 / 0.7},
					{Seen: seen(rng, width), Penalty: 1.3, Scale: 1},
					{Seen: seen(rng, width), Penalty: 0.5, Scale: 0.02},
				}
				for r, got := range bestOf(t, logits, k, choices) {
					checkBest(t, got, logits[r], k, choices[r])
				}
			}
		}
	})
}

// seen is up to MaxPenalised tokens: the first and the last, those at the border of the
// first chunk, others.
func seen(rng *rand.Rand, width int) []int32 {
	var ids []int32
	for _, id := range append([]int{0, width - 1, 1023, 1024}, rng.Perm(width)...) {
		if id < width && len(ids) < model.MaxPenalised && !slices.Contains(ids, int32(id)) {
			ids = append(ids, int32(id))
		}
	}
	return ids
}

func checkBest(t *testing.T, got model.Best, raw []float32, k int, c model.Choice) {
	t.Helper()
	row := slices.Clone(raw)
	for _, id := range c.Seen {
		if v := row[id]; v > 0 {
			row[id] = v / c.Penalty
		} else {
			row[id] = v * c.Penalty
		}
	}
	ids := make([]int32, len(row))
	for i := range ids {
		ids[i] = int32(i)
	}
	sort.SliceStable(ids, func(i, j int) bool { return row[ids[i]] > row[ids[j]] })
	ids = ids[:min(k, len(ids))]
	if !slices.Equal(got.IDs, ids) {
		t.Fatalf("width %d: ids %v, want %v", len(row), got.IDs, ids)
	}
	for i, id := range ids {
		if got.Logits[i] != row[id] || got.Raw[i] != raw[id] {
			t.Fatalf("width %d: logit %g, penalised %g of token %d, want %g, %g", len(row), got.Raw[i], got.Logits[i], id, raw[id], row[id])
		}
	}
	if want := logSum(raw); !(math.Abs(got.LogSum-want) < 1e-5*max(1, math.Abs(want))) && len(row) > 1 {
		t.Errorf("width %d: log sum %g, want %g", len(row), got.LogSum, want)
	}
	checkSum(t, got.Sum, row, c.Scale)
}

// checkSum holds a sum to a quarter of what a sampler allows for.
func checkSum(t *testing.T, got float64, row []float32, scale float32) {
	t.Helper()
	want, top := 0.0, float64(slices.Max(row))
	for _, v := range row {
		want += math.Exp((float64(v) - top) * float64(scale))
	}
	if off := got/want - 1; !(math.Abs(off) < sample.SumError/4) && !math.IsInf(top, -1) {
		t.Errorf("width %d, scale %g: sum %g, want %g: off by %g", len(row), scale, got, want, off)
	}
}

// Sums are as good as samplers count on where their terms are smallest and most: one
// token far above the others, by as much as makes these weigh what it does, in chunks
// that lie apart.
func TestSumsOfLongTails(t *testing.T) {
	const width = 40000
	rng := rand.New(rand.NewPCG(27, 28))
	for _, scale := range []float32{0.01, 0.7, 1, 1 / 0.3, 1000} {
		logits := make([][]float32, 2)
		for r := range logits {
			logits[r] = random(rng, width)
			for i := range logits[r] {
				logits[r][i] = (logits[r][i]*0.1+float32(r*(i/bestChunk%3))-float32(math.Log(width)))/scale - 3.3
			}
			logits[r][777] = -3.3
		}
		choices := slices.Repeat([]model.Choice{{Penalty: 1, Scale: scale}}, len(logits))
		for r, got := range bestOf(t, logits, 1, choices) {
			checkSum(t, got.Sum, logits[r], scale)
		}
	}
}

// A NaN anywhere in a row is seen by the sampler, penalised or not.
func TestBestLogitsShowNaN(t *testing.T) {
	row := make([]float32, 3000)
	row[2999] = float32(math.Copysign(math.NaN(), -1))
	for _, c := range []model.Choice{{Penalty: 1, Scale: 1}, {Seen: []int32{2999}, Penalty: 1.2, Scale: 1}} {
		best := bestOf(t, [][]float32{row}, 1, []model.Choice{c})
		s, err := sample.New(sample.Params{}, len(row))
		if err != nil {
			t.Fatal(err)
		}
		if id, _, err := s.SampleBest(best[0].IDs, best[0].Logits, best[0].Sum); err == nil {
			t.Errorf("drew %d", id)
		}
	}
}

// The tiny model gives the largest of its own logits, penalised, and all logits of a row
// when asked, also when its steps are replayed, beside steps that give all.
func TestForwardBestIsForward(t *testing.T) {
	path := writeTiny(t)
	whole, err := loadTiny(path, newBackend(t))
	if err != nil {
		t.Fatal(err)
	}
	best, err := loadTiny(path, newBackend(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, batch := range tinySteps {
		want, err := whole.Forward(batch)
		if err != nil {
			t.Fatal(err)
		}
		choices := unchanged(len(want))
		choices[0] = model.Choice{Seen: []int32{5, 79, int32(i)}, Penalty: 1.5, Scale: 2}
		for _, k := range []int{1, 64} {
			got, err := best.ForwardBest(batch, k, choices)
			if err != nil || len(got) != len(want) {
				t.Fatal(len(got), err)
			}
			for r := range got {
				checkBest(t, got[r], want[r], k, choices[r])
				if row, err := best.BestRow(r); err != nil || !slices.Equal(row, want[r]) {
					t.Errorf("step %d: row %d is %v, want %v; %v", i, r, row, want[r], err)
				}
			}
		}
	}
}

func TestForwardBestRefuses(t *testing.T) {
	m, err := loadTiny(writeTiny(t), newBackend(t))
	if err != nil {
		t.Fatal(err)
	}
	batch := tinySteps[1]
	for name, c := range map[string]struct {
		k       int
		choices []model.Choice
	}{
		"65 of the largest": {65, unchanged(1)},
		"none":              {0, unchanged(1)},
		"no choice":         {1, nil},
		"no penalty":        {1, []model.Choice{{Scale: 1}}},
		"no scale":          {1, []model.Choice{{Penalty: 1}}},
		"too many":          {1, []model.Choice{{Seen: make([]int32, model.MaxPenalised+1), Penalty: 1, Scale: 1}}},
	} {
		if _, err := m.ForwardBest(batch, c.k, c.choices); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Decode steps are one graph while the tokens that are penalised become more and sampling
// differs from step to step.
func TestPenalisedStepsAreReplayed(t *testing.T) {
	b := newBackend(t)
	m, err := loadTiny(writeTiny(t), b)
	if err != nil {
		t.Fatal(err)
	}
	const steps = 40
	ids := make([]int32, 0, model.MaxPenalised)
	for at := range steps {
		// Tokens beyond the vocabulary are penalised for the number of them alone.
		for range model.MaxPenalised / steps * min(at, 1) {
			ids = append(ids, int32(len(ids)))
		}
		c := model.Choice{Seen: ids, Penalty: 1 + float32(at)/10, Scale: 1 + float32(at)}
		batch := model.Batch{{Tokens: []int32{int32(at)}, Start: at, Blocks: []int32{3, 0, 2}[:at/model.BlockTokens+1], Logits: 1}}
		if _, err := m.ForwardBest(batch, 64, []model.Choice{c}); err != nil {
			t.Fatal(err)
		}
	}
	// The buffers grow in the first step, the third is captured.
	if len(b.replay.graphs) != 1 || b.replay.count != steps-3 {
		t.Errorf("%d graphs, %d steps replayed of %d", len(b.replay.graphs), b.replay.count, steps)
	}
}

// undisclosed hides that a decoder can tell the largest logits.
type undisclosed struct{ model.Decoder }

// The engine writes the same answers with the same confidence whether the device chooses
// or the host does, for all ways to sample; rows are fetched where that is needed.
func TestAnswersFromTheLargestLogits(t *testing.T) {
	path := writeTiny(t)
	fetched, tokens := int64(0), int64(0)
	for _, p := range []sample.Params{
		{},
		{RepetitionPenalty: 1.05},
		{RepetitionPenalty: 1.3},
		{Temperature: 0.7, TopP: 0.9, RepetitionPenalty: 1.1, Seed: 1},
		{Temperature: 0.3, Seed: 2},
		{Temperature: 20, Seed: 3},
		{Temperature: 1, MinP: 0.1, RepetitionPenalty: 0.8, Seed: 4},
		{Temperature: 1, TopK: 70, TopP: 0.98, Seed: 5},
	} {
		got, st := answer(t, path, p, false)
		want, _ := answer(t, path, p, true)
		if !slices.Equal(got.Tokens, want.Tokens) || len(got.Tokens) == 0 {
			t.Errorf("%+v: %v, want %v", p, got.Tokens, want.Tokens)
		}
		if d := got.mean - want.mean; !(math.Abs(d) < 1e-4) {
			t.Errorf("%+v: confidence %g, want %g", p, got.mean, want.mean)
		}
		fetched, tokens = fetched+st.FetchedRows, tokens+st.OutputTokens
		t.Logf("%+v: %d rows fetched for %d tokens", p, st.FetchedRows, st.OutputTokens)
	}
	if fetched == 0 || fetched > tokens/4 {
		t.Errorf("%d rows were fetched for %d tokens", fetched, tokens)
	}
}

// told is an answer with its confidence.
type told struct {
	engine.Delta
	mean float64
}

// answer lets an engine on the tiny model answer.
func answer(t *testing.T, path string, p sample.Params, whole bool) (a told, st engine.Stats) {
	t.Helper()
	b, err := New(testConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	m, err := loadTiny(path, b)
	if err != nil {
		t.Fatal(err)
	}
	dec := model.Decoder(m)
	if whole {
		dec = undisclosed{m}
	}
	e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(t.Context()); err != nil {
			t.Error(err)
		}
		st = e.Stats()
	}()
	s, err := e.Submit(t.Context(), engine.Request{Tokens: []int32{5, 6, 7, 5, 6, 7, 5, 6}, MaxTokens: 40, IgnoreEOS: true, Confidence: true, Sampling: p})
	if err != nil {
		t.Fatal(err)
	}
	for {
		event, err := s.Next(t.Context())
		if err != nil {
			return a, st
		}
		switch event := event.(type) {
		case engine.Delta:
			a.Tokens = append(a.Tokens, event.Tokens...)
		case engine.Done:
			a.mean = event.Confidence.Mean
		case engine.Failed:
			t.Fatal(event.Err)
		}
	}
}
