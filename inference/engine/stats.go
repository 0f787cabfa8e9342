package engine

import (
	"time"

	"ragd/inference/schedule"
)

// Stats is a look at the engine between two steps.
type Stats struct {
	Queued, Running        int
	BlocksUsed, BlocksFree int
	// BlocksCached are those of the free ones that hold a prefix.
	BlocksCached int
	// BlocksOffloaded hold prefixes in host memory.
	BlocksOffloaded int

	// Counts from the start. Tokens of prompts count when they are scheduled,
	// those of answers when they end.
	Submitted, Completed, Cancelled, Failed, Refused int64
	Steps                                            int64
	InputTokens, CachedTokens, OutputTokens          int64
	DraftedTokens, AcceptedTokens                    int64
	// Preemptions is how often a running answer had to give its blocks back and wait;
	// RecomputedTokens, which count when their answer ends, had to be run again for that.
	Preemptions, RecomputedTokens int64
	// FetchedRows is how many rows of logits were fetched for themselves, where the
	// decoder told the largest ones and these did not decide the next token.
	FetchedRows int64

	// PrefillRate is prompt tokens a second and DecodeStep the time of a step
	// that only decodes, without drafts; 0 while not measured.
	PrefillRate float64
	DecodeStep  time.Duration
	// Wait is the predicted time until the prompt of a newcomer would be run:
	// until the prompts ahead are, and when all places are taken, until the
	// requests ahead are done, each with the longest answer it may give.
	Wait time.Duration
}

// Stats says how the engine stands.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Queued = len(e.waiting)
	if e.pace.prefill > 0 {
		s.PrefillRate = 1 / e.pace.prefill
	}
	s.DecodeStep = seconds(e.pace.decode)
	s.Wait = e.wait()
	return s
}

// pace is how fast steps go, as moving averages in seconds, and how much work
// the running sequences still are.
type pace struct {
	prefill  float64 // a prompt token, in steps of prompts alone
	decode   float64 // a step that only decodes
	measured float64 // the last such step that left prompts out
	prompt   int     // prompt tokens to run
	answer   int     // answer tokens to come, at the most
}

// smoothing is the weight of the newest step in an average.
const smoothing = 0.2

// measuredSmoothing is that of a step which left the prompts out, to be measured: there
// are few of these.
const measuredSmoothing = 0.5

func average(old, now float64) float64 {
	if old == 0 {
		return now
	}
	return old + smoothing*(now-old)
}

// load is what a step had in it.
type load struct {
	prompt   int     // rows of prompts
	weight   float64 // of these rows, by their depth
	decoding int     // single rows that asked for a token
	drafted  int
}

func (e *Engine) load() (l load) {
	for _, p := range e.loop.parts {
		l.drafted += p.drafted
		if p.rows == 1 && p.logits > 0 {
			l.decoding++
			continue
		}
		l.prompt += p.rows
		l.weight += float64(p.rows) * e.loop.beside.Weight(p.done)
	}
	return l
}

// note takes the time of the step that was just run into account.
func (e *Engine) note(took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Steps++
	p, l, allowed := &e.pace, e.load(), e.loop.allowed
	switch {
	case l.prompt > 0 && l.decoding > 0:
		e.noteMixed(l, took)
	case l.prompt > 0:
		e.loop.alone.Learn(schedule.Ran{
			Weight: l.weight, Full: l.prompt >= allowed.StepTokens, Took: took, Bound: maxStep,
		})
		p.prefill = average(p.prefill, took.Seconds()/float64(l.prompt))
	case l.drafted == 0 && e.loop.measured && p.decode > 0:
		// A step that was held up would give prompts too many rows until the next one is
		// measured, for 32 gaps, so a longer time counts as far as the one before was long.
		now := took.Seconds()
		p.decode += measuredSmoothing * (min(now, max(p.decode, p.measured)) - p.decode)
		p.measured = now
	case l.drafted == 0:
		p.decode = average(p.decode, took.Seconds())
	}
}

// noteMixed takes the time of a step with prompts beside answers into account.
func (e *Engine) noteMixed(l load, took time.Duration) {
	p := &e.pace
	// The first rows beside a decode step can be nearly free, so such a step tells
	// the rate only where nothing else did.
	if rest := took.Seconds() - p.decode; p.prefill == 0 && rest > 0 {
		p.prefill = rest / float64(l.prompt)
	}
	if p.decode == 0 {
		return
	}
	bound := schedule.Bound(seconds(p.decode), e.gap)
	if e.loop.hurried == 0 {
		e.loop.beside.Learn(schedule.Ran{
			Weight: l.weight, Full: l.prompt >= e.loop.allowed.PromptTokens,
			Took: took, Base: seconds(p.decode), Bound: bound,
		})
	}
	// Not even one row has room: what decoding takes may have become longer, on a
	// machine that has become busier, and prompts would be left at a row. Deep in a
	// prompt it is the row that takes long, so the step itself says nothing: it is
	// measured without.
	if l.prompt == 1 && e.loop.mixed >= leastMixed && took > bound {
		e.loop.mixed = measureEvery - 1
	}
}

// measure brings the figures of the running sequences up to date. The caller
// holds the lock.
func (e *Engine) measure() {
	e.pace.prompt, e.pace.answer, e.stats.Running = 0, 0, 0
	for _, s := range e.loop.running {
		if s.ended {
			continue
		}
		e.stats.Running++
		e.pace.prompt += s.unread()
		e.pace.answer += s.left()
	}
	e.outlook.running = e.jobs(e.outlook.running[:0])
	pool := e.loop.pool
	e.stats.BlocksUsed, e.stats.BlocksFree, e.stats.BlocksCached = pool.InUse(), pool.Free(), pool.Cached()
	e.stats.BlocksOffloaded = pool.Offloaded()
	e.stats.FetchedRows = e.loop.fetched
}

// wait predicts what Stats.Wait says. The caller holds the lock.
func (e *Engine) wait() time.Duration {
	prompt, answer := e.pace.prompt, e.pace.answer
	for _, s := range e.waiting {
		prompt += len(s.tokens)
		answer += s.left()
	}
	if e.stats.Running+len(e.waiting) < e.limits.Running {
		answer = 0
	}
	steps := float64(answer) / float64(e.limits.Running)
	return seconds(float64(prompt)*e.pace.prefill + steps*e.pace.decode)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
