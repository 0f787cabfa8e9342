package answer

import (
	"context"
	"fmt"
	"slices"

	"ragd/ingest"
	"ragd/prompt/budget"
)

// Neighbours finds the chunks beside others.
type Neighbours interface {
	// Neighbours returns, for each chunk, those right before and right behind it in its
	// document, in the order of the document.
	Neighbours(ctx context.Context, chunks []int64) (map[int64][]ingest.Chunk, error)
}

// enlarge joins the neighbours of the presented chunks to them while the budget has
// room, best chunk first, the text behind before the text in front: small chunks are
// found more exactly, larger ones are read better. A chunk that is presented as
// sentences, or was cut, stays as it is.
func (a *asking) enlarge(ctx context.Context, in budget.Input) error {
	if a.Neighbours == nil || a.mode() == KindExtracted {
		return nil
	}
	var whole []int
	var ids []int64
	for i := len(a.view) - 1; i >= 0; i-- { // the best is last
		if v := a.view[i]; !v.sentences && !v.truncated {
			whole, ids = append(whole, i), append(ids, v.hit.Chunk.ID)
		}
	}
	room := a.spare(in)
	if len(ids) == 0 || room <= 0 {
		return nil
	}
	found, err := a.Neighbours.Neighbours(ctx, ids)
	if err != nil {
		return fmt.Errorf("neighbours: %w", err)
	}
	for _, i := range whole {
		for _, n := range slices.Backward(found[a.view[i].hit.Chunk.ID]) {
			room -= a.join(i, n, room)
		}
	}
	return nil
}

// spare is the room that the packing left, in tokens.
func (a *asking) spare(in budget.Input) int {
	l, ledger := in.Limits, a.plan.Ledger
	input := ledger.Input()
	room := l.Window - l.AnswerTokens - input
	if l.TTFTTokens > 0 {
		room = min(room, l.TTFTTokens-input)
	}
	if l.ContextTokens > 0 {
		for _, e := range ledger.Evidence {
			l.ContextTokens -= e.Tokens
		}
		room = min(room, l.ContextTokens)
	}
	return room
}

// join adds a neighbour to what is presented at place i, if it fits the room and
// stands nowhere else in the prompt, and returns what that took. The tokens are those
// of the whole as it will be rendered.
func (a *asking) join(i int, n ingest.Chunk, room int) int {
	v := &a.view[i]
	presented := func(o view) bool { return o.hit.Chunk.ID == n.ID || slices.Contains(o.joined, n.ID) }
	if slices.ContainsFunc(a.view, presented) {
		return 0
	}
	whole, ok := joined(v.span(), n)
	if !ok {
		return 0
	}
	was, will := item(v.hit, v.text, 1), item(v.hit, whole.Text, 1)
	tokens := a.itemTokens(will)
	cost := tokens - a.plan.Kept[i].Tokens
	wording := max(0, a.itemTemplate(will)-a.itemTemplate(was))
	if cost+wording > room {
		return 0
	}
	v.text, v.joined, v.wide = whole.Text, append(v.joined, n.ID), &whole
	a.plan.Kept[i].Tokens = tokens
	a.plan.Dropped = slices.DeleteFunc(a.plan.Dropped, func(d budget.Dropped) bool { return d.ChunkID == n.ID })
	a.plan.Ledger.Dropped = a.plan.Dropped
	return cost + wording
}

// span is the part of its document that is presented.
func (v *view) span() ingest.Chunk {
	if v.wide != nil {
		return *v.wide
	}
	return v.hit.Chunk
}

// joined is two chunks of one document as one text, in the order of the document and
// without doubling what both hold. It reports false where they are not right beside
// each other under the same headings, or where their texts are not the document's
// own (a code block that was closed and opened again).
func joined(a, b ingest.Chunk) (ingest.Chunk, bool) {
	if b.Start < a.Start || b.Start == a.Start && b.End < a.End {
		a, b = b, a
	}
	own := len(a.Text) == a.End-a.Start && len(b.Text) == b.End-b.Start
	if !own || b.End <= a.End || b.Start > a.End+mostBetween || !slices.Equal(a.Heading, b.Heading) {
		return ingest.Chunk{}, false
	}
	out := a
	out.End = b.End
	if b.Start >= a.End {
		between := "\n\n"[:b.Start-a.End]
		out.Text = a.Text + between + b.Text
		return out, true
	}
	both := a.End - b.Start
	if a.Text[len(a.Text)-both:] != b.Text[:both] {
		return ingest.Chunk{}, false
	}
	out.Text = a.Text + b.Text[both:]
	return out, true
}

// mostBetween is how many bytes between two chunks are taken for the line breaks that
// were trimmed there.
const mostBetween = 2
