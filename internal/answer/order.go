package answer

import (
	"context"
	"slices"

	"ragd/prompt"
)

// mostOrdered is how many chunks are put into another order at the most: each step
// towards it renders a prompt for each chunk that is left.
const mostOrdered = 8

// warmest puts the presented chunks into the order whose beginning is in the prefix
// cache. The best chunk stays last, next to the question; the others are of equal
// worth there (prompt/budget), so they begin with whatever an earlier question has
// left warm, and keep their order where nothing is.
func (a *asking) warmest(ctx context.Context) error {
	n := len(a.view)
	if n < 3 || n > mostOrdered || a.mode() == KindExtracted || a.warm(ctx, a.skeleton) == 0 {
		return nil
	}
	as := documented(n)
	before, err := a.warmOf(ctx, as)
	if err != nil {
		return err
	}
	order, err := a.greedy(ctx, as[:n-1])
	if err != nil || slices.Equal(order, as[:n-1]) {
		return err
	}
	order = append(order, n-1)
	after, err := a.warmOf(ctx, order)
	if err != nil || after <= before {
		return err
	}
	a.reorder(order)
	a.res.Usage.SavedTokens = after - before
	return nil
}

func documented(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// greedy begins with the chunk behind which most of the prompt is warm, then the next,
// until no chunk makes more of it warm; the rest keep their order.
func (a *asking) greedy(ctx context.Context, rest []int) (order []int, err error) {
	rest = slices.Clone(rest)
	warm, err := a.warmOf(ctx, nil)
	if err != nil {
		return nil, err
	}
	for len(rest) > 0 {
		best := -1
		for i, at := range rest {
			n, err := a.warmOf(ctx, append(slices.Clone(order), at))
			if err != nil {
				return nil, err
			}
			if n > warm {
				best, warm = i, n
			}
		}
		if best < 0 {
			break
		}
		order, rest = append(order, rest[best]), slices.Delete(rest, best, best+1)
	}
	return append(order, rest...), nil
}

// warmOf is how much of the prompt is warm that presents these chunks in this order.
func (a *asking) warmOf(ctx context.Context, order []int) (int, error) {
	c := a.composition(a.history[a.plan.TurnsDropped:])
	for i, at := range order {
		c.Evidence = append(c.Evidence, item(a.view[at].hit, a.view[at].text, i+1))
	}
	if len(order) == 0 {
		c.Evidence = []prompt.Item{standIn}
	}
	segments, err := a.segments(prompt.Compose(c))
	if err != nil {
		return 0, err
	}
	tokens, _ := a.tokenize(segments)
	return a.warm(ctx, tokens), nil
}

// reorder applies an order to what is presented and to the plan behind it.
func (a *asking) reorder(order []int) {
	view, kept := slices.Clone(a.view), slices.Clone(a.plan.Kept)
	for i, at := range order {
		a.view[i], a.plan.Kept[i] = view[at], kept[at]
	}
}
