package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"ragd/inference/engine"
	"ragd/inference/model"
)

// reciter is a decoder that can be made to say a given text: it computes what it
// would, and then has the wanted token come out on top. So a test of answers that
// quote can be sure that they do, with all the work of a model that wants to.
type reciter struct {
	model.Decoder
	mu   sync.Mutex
	text []int32 // prompt and answer of the only request that runs, or nil
}

func (r *reciter) recite(text []int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = text
}

// Forward runs the batch and puts the wanted tokens on top.
func (r *reciter) Forward(b model.Batch) ([][]float32, error) {
	rows, err := r.Decoder.Forward(b)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || r.text == nil {
		return rows, err
	}
	at := 0
	for i := range b {
		p := &b[i]
		end := p.Start + len(p.Tokens)
		for next := end - p.Logits + 1; next <= end; next++ {
			if next < len(r.text) {
				rows[at][r.text[next]] = slices.Max(rows[at]) + 1
			}
			at++
		}
	}
	return rows, nil
}

// quoted is what quoting answers came to, with lookup and without.
type quoted struct {
	took             [2]time.Duration
	tokens           int // after the first of each answer
	drafted, accepts int
}

// quote asks for one answer with prompt lookup and without. It fails when the
// texts differ.
func (b *engineBench) quote(ctx context.Context, q *quoted, r engine.Request) error {
	var said [2]answer
	for i, off := range []bool{false, true} {
		r.NoLookup = off
		var err error
		if said[i], err = b.answer(ctx, r); err != nil {
			return err
		}
		q.took[i] += said[i].times.Decode()
	}
	if !slices.Equal(said[0].tokens, said[1].tokens) {
		return fmt.Errorf("the answer with prompt lookup differs from that without: %v, %v", said[0].tokens, said[1].tokens)
	}
	q.tokens += len(said[0].tokens) - 1
	q.drafted += said[0].drafted
	q.accepts += said[0].accepted
	return nil
}

// result is tokens a second with lookup, over those without.
func (b *engineBench) result(q *quoted) (float64, float64, error) {
	b.detail = fmt.Sprintf("%d of %d drafted tokens accepted, %.1f tokens a step",
		q.accepts, q.drafted, float64(q.tokens)/float64(q.tokens-q.accepts))
	return float64(q.tokens) / q.took[0].Seconds(), q.took[1].Seconds() / q.took[0].Seconds(), nil
}

// quoting is decoding of answers that are quotes from their prompts, word for word,
// with prompt lookup, over the same without.
func (b *engineBench) quoting(ctx context.Context) (float64, float64, error) {
	defer b.recite.recite(nil)
	texts := slices.Concat(passages, koreanPassages)
	var prompt []int32
	for _, text := range texts {
		prompt = b.tok.Encode(prompt, text+"\n\n")
	}
	var q quoted
	for _, text := range texts {
		said := b.tok.Encode(nil, text+"\n\n")
		b.recite.recite(slices.Concat(prompt, said))
		r := engine.Request{Tokens: prompt, MaxTokens: len(said), IgnoreEOS: true, Tenant: "quoting"}
		if err := b.quote(ctx, &q, r); err != nil {
			return 0, 0, err
		}
	}
	return b.result(&q)
}

// quotingFreely is quoting of a text that stands in the prompt twice, as far as the
// model repeats it of its own will.
func (b *engineBench) quotingFreely(ctx context.Context) (float64, float64, error) {
	var q quoted
	for _, text := range passages {
		r := engine.Request{
			Tokens:    b.tok.Encode(nil, text+"\n\n"+text+"\n\n"),
			MaxTokens: len(b.tok.Encode(nil, text)), Tenant: "quoting",
		}
		if err := b.quote(ctx, &q, r); err != nil {
			return 0, 0, err
		}
	}
	return b.result(&q)
}
