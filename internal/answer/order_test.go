package answer

import (
	"context"
	"slices"
	"testing"
	"time"

	"ragd/retrieve"
)

// warmGenerator has the prompts it was given in a cache of whole blocks, and reads a
// token in a millisecond.
type warmGenerator struct {
	*fakeGenerator
	seen [][]int32
	wait time.Duration
}

const block = 16

func (g *warmGenerator) Warm(_ context.Context, tokens []int32) int {
	most := 0
	for _, s := range g.seen {
		n := 0
		for n < len(s) && n < len(tokens)-1 && s[n] == tokens[n] {
			n++
		}
		most = max(most, n/block*block)
	}
	return most
}

func (g *warmGenerator) FirstToken(prompt, warm int, _ time.Time) time.Duration {
	return g.wait + time.Duration(prompt-warm)*time.Millisecond
}

func (g *warmGenerator) Generate(ctx context.Context, req Generation, emit func(Event)) (Generated, error) {
	out, err := g.fakeGenerator.Generate(ctx, req, emit)
	out.CachedTokens = g.Warm(ctx, req.Tokens)
	g.seen = append(g.seen, req.Tokens)
	return out, err
}

func warmRig(t *testing.T, hits []retrieve.Hit) (*rig, *warmGenerator) {
	r := newRig(t, hits, &fakeGenerator{pieces: []string{"ok"}})
	g := &warmGenerator{fakeGenerator: r.gen}
	r.Generator = g
	return r, g
}

// scored are hits of falling score, so that the first is the best.
func scored(titles ...string) []retrieve.Hit {
	var hits []retrieve.Hit
	for i, title := range titles {
		h := chunk(int64(len(title)*100+int(title[0])), title, "This is what "+title+" says at some length about the matter at hand.")
		h.Scores.Fused -= 0.01 * float32(i)
		h.Scores.DensePart = h.Scores.Fused
		hits = append(hits, h)
	}
	return hits
}

func titles(res *Result) (out []string) {
	for _, s := range res.Sources.Presented {
		out = append(out, s.Title)
	}
	return out
}

func TestOrderBeginsWithWhatIsWarm(t *testing.T) {
	r, g := warmRig(t, scored("best", "second", "third"))
	first, _ := ask(t, r, Request{Question: "What?"})
	if got := titles(first); !slices.Equal(got, []string{"third", "second", "best"}) || first.Usage.SavedTokens != 0 {
		t.Fatalf("cold: %v, saved %d", got, first.Usage.SavedTokens)
	}
	// The same chunks in another order of worth: third and second are warm at the start.
	r.Retriever = fakeRetriever{hits: scored("other", "third", "second")}
	next, _ := ask(t, r, Request{Question: "And now?"})
	if got := titles(next); !slices.Equal(got, []string{"third", "second", "other"}) {
		t.Errorf("warm: %v", got)
	}
	u := next.Usage
	if u.SavedTokens < block || u.SavedTokens > u.CachedTokens || u.InputTokens != len(g.got.Tokens) || u.InputTokens != u.Ledger.Input() {
		t.Errorf("usage %+v", u)
	}
	for i, e := range u.Ledger.Evidence {
		if e.ChunkID != next.Sources.Presented[i].ChunkID {
			t.Errorf("the ledger has chunk %d at place %d, presented is %d", e.ChunkID, i, next.Sources.Presented[i].ChunkID)
		}
	}
	// The best one stays last, warm or not.
	r.Retriever = fakeRetriever{hits: scored("third", "second", "other")}
	last, _ := ask(t, r, Request{Question: "Well?"})
	if got := titles(last); got[2] != "third" {
		t.Errorf("the best chunk stands at %v", got)
	}
}
