package budget

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func drawInput(t *rapid.T) Input {
	small := rapid.IntRange(0, 60)
	in := Input{
		Fixed:  Fixed{small.Draw(t, "template"), small.Draw(t, "system"), small.Draw(t, "tools"), small.Draw(t, "question")},
		Detail: Detail(rapid.IntRange(0, 2).Draw(t, "detail")),
		Order:  Order(rapid.IntRange(0, 1).Draw(t, "order")),
		Limits: Limits{
			Window: rapid.IntRange(0, 900).Draw(t, "window"), AnswerTokens: small.Draw(t, "answer"),
			ContextTokens: rapid.IntRange(0, 300).Draw(t, "context"), TTFTTokens: rapid.IntRange(0, 600).Draw(t, "ttft"),
			MaxChunks: rapid.IntRange(0, 6).Draw(t, "max chunks"),
		},
	}
	in.History = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Turn {
		return Turn{Tokens: rapid.IntRange(0, 120).Draw(t, "tokens"), Template: small.Draw(t, "scaffold")}
	}), 0, 8).Draw(t, "history")
	drop := rapid.SampledFrom([]Reason{"", "", "", "", Duplicate, BelowThreshold, Filtered})
	in.Candidates = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Candidate {
		return Candidate{Tokens: rapid.IntRange(0, 300).Draw(t, "tokens"), Sentences: rapid.IntRange(0, 200).Draw(t, "sentences"), Drop: drop.Draw(t, "drop")}
	}), 0, 12).Draw(t, "candidates")
	for i := range in.Candidates {
		in.Candidates[i].ChunkID = int64(i)
	}
	if glue := rapid.IntRange(0, 9).Draw(t, "glue"); glue > 0 {
		in.ItemTemplate = func(n int) int { return glue + n/10 }
	}
	return in
}

// holds checks what must be true of every packing.
func holds(in Input, p *Plan, err error) error {
	fixed := in.Fixed.sum() + in.Limits.AnswerTokens
	var over *OverBudgetError
	if errors.As(err, &over) {
		if fixed <= in.Limits.Window || over.Need != fixed {
			return fmt.Errorf("needless refusal: %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if err := p.Ledger.Check(p.Ledger.Input()); err != nil {
		return err
	}
	if err := accounted(in, p); err != nil {
		return err
	}
	return tight(in, p)
}

// accounted: each candidate stands in exactly one of the two lists.
func accounted(in Input, p *Plan) error {
	seen := map[int64]int{}
	evidence := 0
	for _, k := range p.Kept {
		c := in.Candidates[k.Index]
		if seen[k.ChunkID]++; c.Drop != "" || c.ChunkID != k.ChunkID {
			return fmt.Errorf("kept %+v of %+v", k, c)
		}
		if want := map[bool]int{true: c.Sentences, false: c.Tokens}[k.Sentences]; k.Tokens != want {
			return fmt.Errorf("kept %+v, costs %d", k, want)
		}
		evidence += k.Tokens
	}
	for _, d := range p.Dropped {
		c := in.Candidates[d.ChunkID]
		if seen[d.ChunkID]++; d.Reason == "" || c.Drop != "" && d.Reason != c.Drop || d.Tokens != c.Tokens {
			return fmt.Errorf("dropped %+v of %+v", d, c)
		}
	}
	for _, c := range in.Candidates {
		if seen[c.ChunkID] != 1 {
			return fmt.Errorf("chunk %d stands in %d lists", c.ChunkID, seen[c.ChunkID])
		}
	}
	l := in.Limits
	if l.ContextTokens > 0 && evidence > l.ContextTokens || l.MaxChunks > 0 && len(p.Kept) > l.MaxChunks {
		return fmt.Errorf("%d tokens in %d chunks exceed %+v", evidence, len(p.Kept), l)
	}
	return nil
}

// tight: the sum is that of its parts, and within the time asked for unless
// nothing could be left out.
func tight(in Input, p *Plan) error {
	want := in.Fixed.sum()
	for _, t := range in.History[p.TurnsDropped:] {
		want += t.Tokens + t.Template
	}
	for i, k := range p.Kept {
		want += k.Tokens
		if in.ItemTemplate != nil {
			want += in.ItemTemplate(i + 1)
		}
	}
	got := p.Ledger.Input()
	if got != want {
		return fmt.Errorf("ledger says %d, parts sum to %d", got, want)
	}
	if ttft := in.Limits.TTFTTokens; ttft > 0 && got > max(ttft, in.Fixed.sum()) {
		return fmt.Errorf("%d tokens exceed the %d that the time allows", got, ttft)
	}
	if p.Truncate != nil && (len(p.Kept) > 0 || got+p.Truncate.Room+in.Limits.AnswerTokens > in.Limits.Window) {
		return fmt.Errorf("offers %+v at %d tokens", *p.Truncate, got)
	}
	return nil
}

func TestPackProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		p, err := Pack(in)
		if err := holds(in, p, err); err != nil {
			t.Fatal(err)
		}
	})
}

// Whether a chunk is presented never depends on worse ones.
func TestPackPrefersTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		in.Detail = Chunks
		p, err := Pack(in)
		if err != nil {
			return
		}
		for i, c := range in.Candidates {
			if c.Drop != "" {
				continue
			}
			alone := in
			alone.Candidates = in.Candidates[:i+1]
			q, err := Pack(alone)
			if err != nil {
				t.Fatal(err)
			}
			if contains(p, c.ChunkID) != contains(q, c.ChunkID) {
				t.Fatalf("chunk %d depends on worse candidates", c.ChunkID)
			}
		}
	})
}

func contains(p *Plan, id int64) bool {
	for _, k := range p.Kept {
		if k.ChunkID == id {
			return true
		}
	}
	return false
}

func FuzzPack(f *testing.F) {
	f.Add([]byte{200, 10, 30, 0, 4, 3, 5, 2, 9, 20, 0, 60, 40, 1, 70, 0, 2})
	f.Add([]byte{255, 0, 0, 120, 1, 0, 0, 0, 0})
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		in := drawInput(t)
		p, err := Pack(in)
		if err := holds(in, p, err); err != nil {
			t.Fatal(err)
		}
	}))
}
