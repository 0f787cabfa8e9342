package answer

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ragd/prompt/budget"
	"ragd/retrieve"
)

func longHits(n int) []retrieve.Hit {
	var hits []retrieve.Hit
	for i := range n {
		h := chunk(int64(i+1), strings.Repeat(string(rune('a'+i)), 3), strings.Repeat("Words of chunk "+string(rune('a'+i))+". ", 20))
		h.Scores.Fused -= 0.01 * float32(i)
		h.Scores.DensePart = h.Scores.Fused
		hits = append(hits, h)
	}
	return hits
}

func withTTFT(ms int) Request {
	return Request{Question: "What?", Budget: &Budget{TTFTMS: &ms, Detail: DetailChunks}}
}

// As much evidence is kept as the time allows, and no chunk less.
func TestTTFTBudgetKeepsWhatFits(t *testing.T) {
	r, g := warmRig(t, longHits(4))
	r.margin.at = 1
	full, _ := ask(t, r, Request{Question: "What?", Budget: &Budget{Detail: DetailChunks}})
	if len(full.Sources.Presented) != 4 || full.FirstToken.AskedMS != 0 {
		t.Fatalf("without a time: %d presented, %+v", len(full.Sources.Presented), full.FirstToken)
	}
	g.seen = nil
	one := full.Usage.Ledger.Evidence[0].Tokens + 20 // with its wording, at the most
	for _, wait := range []time.Duration{0, 100 * time.Millisecond} {
		g.seen, g.wait, r.margin.at = nil, wait, 1
		ms := full.Usage.InputTokens - one + int(wait.Milliseconds())
		res, _ := ask(t, r, withTTFT(ms))
		f := res.FirstToken
		if f.AskedMS != float64(ms) || f.PredictedMS > float64(ms) || f.PredictedMS < float64(ms-one-50) || f.ObservedMS <= 0 {
			t.Errorf("wait %v: %+v of %d ms, a chunk is %d", wait, f, ms, one)
		}
		if n := len(res.Sources.Presented); n < 2 || n > 3 {
			t.Errorf("wait %v: %d chunks presented, want 3 or, with rounding, 2", wait, n)
		}
		for _, d := range res.Usage.Ledger.Dropped {
			if d.Reason != budget.OverTTFT {
				t.Errorf("chunk %d dropped as %s", d.ChunkID, d.Reason)
			}
		}
	}
	// What is warm costs no time: the same prompt again is read whole.
	g.wait, r.margin.at = 0, 1
	g.seen = [][]int32{g.got.Tokens}
	again, _ := ask(t, r, withTTFT(full.Usage.InputTokens-one+g.Warm(context.Background(), r.skeletonOf(t))))
	if len(again.Sources.Presented) < 3 {
		t.Errorf("with a warm beginning %d chunks are presented", len(again.Sources.Presented))
	}
}

// skeletonOf is the prompt of TestTTFTBudgetKeepsWhatFits before evidence.
func (r *rig) skeletonOf(t *testing.T) []int32 {
	a := &asking{Service: r.Service, req: Request{Question: "What?"}}
	if _, err := a.bones(); err != nil {
		t.Fatal(err)
	}
	return a.skeleton
}

// A time too short for any evidence is no refusal: an answer that may be extracted
// is, any other reads the best chunk late.
func TestTTFTBudgetTooShort(t *testing.T) {
	r, g := warmRig(t, longHits(3))
	res, _ := ask(t, r, withTTFT(1))
	if res.Refused || res.Kind != KindExtracted || g.got.Tokens != nil || res.FirstToken != nil || len(res.Citations) == 0 {
		t.Errorf("auto: %s, refused %v, %+v", res.Kind, res.Refused, res.FirstToken)
	}
	req := withTTFT(1)
	req.AnswerMode = ModeGenerate
	res, _ = ask(t, r, req)
	if res.Refused || res.Kind != KindGenerated || len(res.Sources.Presented) != 1 || res.Sources.Presented[0].ChunkID != 1 {
		t.Errorf("generate: %s, %+v", res.Kind, res.Sources.Presented)
	}
	if res.FirstToken.PredictedMS <= 1 {
		t.Errorf("the prediction hides that it is late: %+v", res.FirstToken)
	}
	for _, d := range res.Usage.Ledger.Dropped {
		if d.Reason != budget.OverTTFT {
			t.Errorf("chunk %d dropped as %s", d.ChunkID, d.Reason)
		}
	}
}

// Only answers that the margin cut teach it.
func TestMarginLearnsFromWhatItCut(t *testing.T) {
	r, _ := warmRig(t, longHits(4))
	full, _ := ask(t, r, Request{Question: "What?", Budget: &Budget{Detail: DetailChunks}})
	before := r.margin.at
	ask(t, r, withTTFT(100_000))
	if r.margin.at != before {
		t.Errorf("an answer with time to spare moved the margin from %g to %g", before, r.margin.at)
	}
	if res, _ := ask(t, r, withTTFT(full.Usage.InputTokens/2)); len(res.Sources.Presented) >= 4 || r.margin.at == before {
		t.Errorf("%d chunks presented, the margin is still %g", len(res.Sources.Presented), r.margin.at)
	}
}

// The margin follows the spread of the predictions: of times that scatter around
// them, all but few come within it, and it is not far above what that takes.
func TestMarginFollows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []float64{0.02, 0.1, 0.3} {
		m := newMargin()
		late, sum := 0, 0.0
		const rounds = 3000
		for i := range rounds + 200 {
			ratio := 1 + spread*rng.NormFloat64()
			if i >= 200 {
				sum += m.factor()
				if ratio > m.factor() {
					late++
				}
			}
			m.learn(ratio)
		}
		if share := float64(late) / rounds; share > 0.05 {
			t.Errorf("spread %g: %.1f %% came late", spread, 100*share)
		}
		if mean := sum / rounds; mean > 1+3*spread+0.03 {
			t.Errorf("spread %g: the margin is %.2f", spread, mean)
		}
	}
}
