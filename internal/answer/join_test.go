package answer

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ragd/ingest"
	"ragd/retrieve"
)

// cutAt are the chunks of a document between byte positions, each overlapping the one
// before by so many bytes.
func cutAt(text string, overlap int, at ...int) []ingest.Chunk {
	var out []ingest.Chunk
	for i := 1; i < len(at); i++ {
		start := at[i-1]
		if i > 1 {
			start = max(0, start-overlap)
		}
		out = append(out, ingest.Chunk{ID: int64(i), Ordinal: i - 1, Text: text[start:at[i]], Start: start, End: at[i], Heading: []string{"Head"}})
	}
	return out
}

// Chunks joined again are the text they were cut from.
func TestJoinedIsTheDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-c가-나 ]{20,200}`).Draw(t, "text")
		bounds := []int{0, len(text)}
		for range rapid.IntRange(1, 4).Draw(t, "cuts") {
			bounds = append(bounds, rapid.IntRange(1, len(text)-1).Draw(t, "cut"))
		}
		slices.Sort(bounds)
		bounds = slices.Compact(bounds)
		chunks := cutAt(text, rapid.IntRange(0, 12).Draw(t, "overlap"), bounds...)
		whole, ok := chunks[0], true
		for _, c := range chunks[1:] {
			if whole, ok = joined(c, whole); !ok { // in either order
				t.Fatalf("%+v do not join", chunks)
			}
		}
		if whole.Text != text || whole.Start != 0 || whole.End != len(text) {
			t.Fatalf("%q, want %q", whole.Text, text)
		}
	})
}

func TestJoinedRefuses(t *testing.T) {
	base := func() (a, b ingest.Chunk) {
		c := cutAt("The first part. The second part.", 0, 0, 16, 32)
		return c[0], c[1]
	}
	for name, change := range map[string]func(a, b *ingest.Chunk){
		"other headings":     func(_, b *ingest.Chunk) { b.Heading = []string{"Other"} },
		"a gap":              func(_, b *ingest.Chunk) { b.Start, b.End = b.Start+3, b.End+3 },
		"a reopened fence":   func(_, b *ingest.Chunk) { b.Text = "```\n" + b.Text },
		"another text there": func(_, b *ingest.Chunk) { b.Start -= 4; b.Text = "else" + b.Text },
		"inside the other":   func(a, b *ingest.Chunk) { *b = ingest.Chunk{Text: a.Text[2:5], Start: 2, End: 5, Heading: a.Heading} },
	} {
		a, b := base()
		change(&a, &b)
		if got, ok := joined(a, b); ok {
			t.Errorf("%s: joined to %q", name, got.Text)
		}
	}
	a, b := base()
	a.Text, a.End = strings.TrimRight(a.Text, " "), a.End-1
	if got, ok := joined(a, b); !ok || got.Text != "The first part.\nThe second part." {
		t.Errorf("over a trimmed space: %q, %v", got.Text, ok)
	}
}

type besides map[int64][]ingest.Chunk

func (n besides) Neighbours(context.Context, []int64) (map[int64][]ingest.Chunk, error) {
	return n, nil
}

func TestNeighboursFillTheBudget(t *testing.T) {
	text := strings.Repeat("Before it stands this. ", 4) + strings.Repeat("Here is the matter. ", 4) + strings.Repeat("Behind it follows that. ", 4)
	chunks := cutAt(text, 10, 0, 92, 172, len(text))
	hit := func(c ingest.Chunk, fused float32) retrieve.Hit {
		return retrieve.Hit{
			Chunk: c, Document: retrieve.Document{ID: 1, Path: "a.md", Title: "A"},
			Scores: retrieve.Scores{Dense: 0.9, DensePart: fused, Fused: fused},
		}
	}
	rigOf := func(hits ...retrieve.Hit) *rig {
		r := newRig(t, hits, &fakeGenerator{pieces: []string{"ok"}})
		r.Neighbours = besides{2: {chunks[0], chunks[2]}}
		return r
	}
	r := rigOf(hit(chunks[1], 0.9))
	res, _ := ask(t, r, Request{Question: "What?", Budget: &Budget{Detail: DetailChunks}})
	p := res.Sources.Presented[0]
	if p.Text != strings.TrimSpace(text) && p.Text != text || !slices.Equal(p.Joined, []int64{3, 1}) {
		t.Errorf("presented %v %q", p.Joined, p.Text)
	}
	e := res.Usage.Ledger.Evidence[0]
	if !slices.Equal(e.Joined, p.Joined) || res.Usage.InputTokens != len(r.gen.got.Tokens) || res.Usage.InputTokens != res.Usage.Ledger.Input() {
		t.Errorf("ledger %+v, the engine was given %d", res.Usage.Ledger, len(r.gen.got.Tokens))
	}
	// Room for one of them: the one behind.
	tokens := e.Tokens - 1
	res, _ = ask(t, r, Request{Question: "What?", Budget: &Budget{Detail: DetailChunks, ContextTokens: &tokens}})
	if p := res.Sources.Presented[0]; !slices.Equal(p.Joined, []int64{3}) || res.Usage.Ledger.Evidence[0].Tokens > tokens {
		t.Errorf("in %d tokens: %v, %+v", tokens, p.Joined, res.Usage.Ledger.Evidence)
	}
	// One that was found itself stands once, in its own place.
	res, _ = ask(t, rigOf(hit(chunks[1], 0.9), hit(chunks[2], 0.8)), Request{Question: "What?", Budget: &Budget{Detail: DetailChunks}})
	if n := len(res.Sources.Presented); n != 2 || !slices.Equal(res.Sources.Presented[1].Joined, []int64{1}) {
		t.Errorf("%d presented: %+v", n, res.Sources.Presented)
	}
	// One that was left out for the number of chunks is presented as a part.
	one := 1
	res, _ = ask(t, rigOf(hit(chunks[1], 0.9), hit(chunks[2], 0.8)), Request{Question: "What?", MaxChunks: &one, Budget: &Budget{Detail: DetailChunks}})
	if len(res.Usage.Ledger.Dropped) != 0 || !slices.Contains(res.Sources.Presented[0].Joined, 3) {
		t.Errorf("dropped %+v, joined %v", res.Usage.Ledger.Dropped, res.Sources.Presented[0].Joined)
	}
}
