package answer

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// answerGenerated renders the prompt and streams what the model writes. In mode
// KindBoth the supporting sentences go out first, while the prompt is still read.
func (a *asking) answerGenerated(ctx context.Context, mode string) (err error) {
	a.res.Kind = mode
	ctx, end := a.rec.Chat(ctx, a.res.Model, a.Generator.Model().Server)
	defer func() { end(a.res.Usage.call(a.res.FinishReason), err) }()
	if err := a.render(ctx); err != nil {
		return err
	}
	gen, offset, err := a.generate(ctx, mode)
	a.res.FinishReason = gen.FinishReason
	a.res.Usage.OutputTokens, a.res.Usage.CachedTokens = gen.OutputTokens, gen.CachedTokens
	a.res.Usage.counted(gen.InputTokens)
	if err != nil {
		a.res.Answer = a.text.String()
		return fmt.Errorf("generate: %w", err)
	}
	if a.req.ResponseFormat.constrained() {
		a.finish() // [1] in JSON is a list, not a marker
		return nil
	}
	for _, c := range citations(a.text.String()[offset:], a.presented(), utf8.RuneCountInString(a.text.String()[:offset])) {
		a.citation(c)
	}
	if a.doubtful(mode) && a.unsure(gen) {
		a.res.Kind = KindBoth
		a.say("\n\n")
		a.quote()
	}
	a.finish()
	return nil
}

// doubtful says whether an answer of this mode is backed by quotes when the model
// is unsure of it: only when the caller left the choice to us.
func (a *asking) doubtful(mode string) bool {
	auto := a.req.AnswerMode == "" || a.req.AnswerMode == ModeAuto
	return auto && mode == KindGenerated
}

func (a *asking) unsure(gen Generated) bool {
	return gen.OutputTokens > 0 && gen.MeanLogProb < a.cfg.MinConfidence
}

// generate runs the engine. offset is where the model's own words start in the
// answer, in bytes.
func (a *asking) generate(ctx context.Context, mode string) (gen Generated, offset int, err error) {
	began := false
	a.predict(ctx)
	gen, err = a.Generator.Generate(ctx, Generation{
		Tokens: a.tokens, Messages: a.messages, MaxTokens: a.answerTokens(), Sampling: a.sampling(a.req.sampling()), Stop: a.req.sampling().Stop,
		Format: a.req.ResponseFormat, Confidence: a.doubtful(mode), FirstTokenBy: a.due,
	}, func(e Event) {
		a.open(e.Position)
		if e.Queued {
			if mode == KindBoth && a.text.Len() == 0 {
				a.quote()
				a.say("\n\n")
			}
			offset = a.text.Len()
			return
		}
		if !began {
			e.Text = strings.TrimLeftFunc(e.Text, unicode.IsSpace)
			began = e.Text != ""
		}
		a.say(e.Text)
	})
	a.submitted = !gen.Times.Scheduled.IsZero()
	a.machine.add(gen.Machine)
	times := gen.Times
	if err != nil {
		times.Last = time.Time{} // cut short: it was in its stage until now
	}
	a.rec.Generation(ctx, times, time.Now())
	a.judge(gen.Times)
	return gen, offset, err
}

func (a *asking) answerTokens() int { return or(a.req.budget().AnswerTokens, a.cfg.AnswerTokens) }

// smallPenalty keeps small models from going round in circles, which greedy
// decoding makes them do.
const smallPenalty = 1.05

// sampling resolves the request's numbers. Greedy is the default: the same
// question gets the same answer. Without a seed each request draws its own.
func (svc *Service) sampling(s Sampling) SamplingParams {
	penalty := 1.0
	if svc.Generator.Model().Small {
		penalty = smallPenalty
	}
	p := SamplingParams{
		Temperature: orFloat(s.Temperature, 0), TopP: orFloat(s.TopP, 1), MinP: orFloat(s.MinP, 0),
		RepetitionPenalty: orFloat(s.RepetitionPenalty, penalty), TopK: or(s.TopK, 0),
	}
	if s.TopP != nil {
		// The sampler takes 0 for no limit; in a request it means the best token alone.
		p.TopP = max(p.TopP, leastTopP)
	}
	if s.Seed != nil {
		p.Seed = uint64(*s.Seed)
		return p
	}
	var seed [8]byte
	rand.Read(seed[:]) // never fails (crypto/rand)
	p.Seed = binary.LittleEndian.Uint64(seed[:])
	return p
}

// leastTopP keeps one token: no vocabulary is that large.
const leastTopP = 1e-9

func orFloat(v *float64, fallback float64) float64 {
	if v == nil {
		return fallback
	}
	return *v
}

// open sends what stands before the first word: the place in the queue and the
// sources.
func (a *asking) open(position int) {
	if !a.opened {
		a.opened = true
		a.sink.Queued(position)
		a.sink.Sources(a.res.Sources)
		return
	}
	if position > 0 {
		a.sink.Queued(position)
	}
}

// say adds text to the answer and sends it.
func (a *asking) say(text string) {
	if text == "" {
		return
	}
	a.text.WriteString(text)
	a.sink.Delta(text)
	a.rec.FirstWrite(time.Now())
}

// quote adds the supporting sentences with their citations.
func (a *asking) quote() {
	offset := utf8.RuneCountInString(a.text.String())
	q := extract(a.req.Question, a.question, a.presented())
	a.say(q.text)
	for _, c := range q.citations {
		c.Quote.Start += offset
		c.Quote.End += offset
		a.citation(c)
	}
}

func (a *asking) citation(c Citation) {
	a.res.Citations = append(a.res.Citations, c)
	a.sink.Citation(c)
}

func (a *asking) finish() {
	a.res.Answer = strings.TrimRightFunc(a.text.String(), unicode.IsSpace)
	a.res.Sources.Cited = cited(a.res.Citations, a.presented())
}

// explain lists the candidates and, once rendered, the prompt by component.
func (a *asking) explain() {
	a.res.Explain = &Explain{
		Prompt: []ExplainPart{}, Candidates: a.candidates(), Rerank: a.reranked, Language: language(a.req.Question),
	}
}
