package engine

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ragd/inference/engine/enginetest"
	"ragd/inference/kvcache"
	"ragd/inference/model"
	"ragd/inference/sample"
	"ragd/inference/schedule"
)

// crowd is an engine driven step by step, beside what its answers must come to.
type crowd struct {
	e      *Engine
	blocks int
	length float64 // of an answer, as the engine believes
	live   []*member
	serial int
}

// member is a request and what it would be answered alone.
type member struct {
	stream *Stream
	want   []int32
	got    []int32
	begun  bool
	cached int
	fed    bool // whether its last event was read
}

// Whatever comes, goes, grows and leaves in a cache that is too small: after every step
// the books of the blocks agree with what runs, the first to start is never preempted,
// and in the end every answer is the one that an undisturbed run gives, told once.
func TestPreemptionProperties(t *testing.T) {
	var preemptions, recomputed int64
	rapid.Check(t, func(t *rapid.T) {
		blocks := rapid.IntRange(2, 20).Draw(t, "blocks")
		cfg := Config{
			MaxRunning: rapid.IntRange(1, 8).Draw(t, "places"), PieceTokens: rapid.IntRange(4, 40).Draw(t, "piece"),
			NoPrefixCache: rapid.IntRange(0, 4).Draw(t, "prefix") == 0, NoLookup: rapid.Bool().Draw(t, "lookup"),
			MaxQueue: 1000,
		}
		e, err := build(newRepeater(blocks), enginetest.Tokenizer{}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		c := &crowd{e: e, blocks: blocks, length: rapid.SampledFrom([]float64{1, 1, 20, 1000}).Draw(t, "length")}
		t.Repeat(map[string]func(*rapid.T){"submit": c.submit, "step": c.step, "more": c.steps, "leave": c.leave, "": c.check})
		c.finish(t)
		preemptions, recomputed = preemptions+e.stats.Preemptions, recomputed+e.stats.RecomputedTokens
	})
	t.Logf("%d preemptions, %d tokens run again", preemptions, recomputed)
	if preemptions == 0 || recomputed == 0 {
		t.Errorf("%d preemptions, %d tokens run again: nothing was tested", preemptions, recomputed)
	}
}

// newRepeater is a decoder whose texts repeat themselves, so that drafts are accepted
// often. What comes next depends on all that the cache holds.
func newRepeater(blocks int) *enginetest.Decoder {
	d := enginetest.NewDecoder(blocks, 4096)
	d.Next = func(tokens []int32) int32 {
		sum := int32(0)
		for i, t := range tokens {
			sum += t * int32(1+i%3)
		}
		if n := len(tokens); sum%5 > 0 && n > 6 {
			return tokens[n-6]
		}
		return 'a' + (sum%7+7)%7
	}
	return d
}

// submit asks for a few answers.
func (c *crowd) submit(t *rapid.T) {
	for range rapid.IntRange(1, 8).Draw(t, "requests") {
		c.ask(t)
	}
}

// ask asks for an answer of any length that fits at all, mostly behind a short prompt.
func (c *crowd) ask(t *rapid.T) {
	window := c.e.Window()
	prompt := rapid.IntRange(1, rapid.SampledFrom([]int{window / 8, window / 4, window - 1}).Draw(t, "most")).Draw(t, "prompt")
	r := Request{
		MaxTokens: rapid.IntRange(1, window-prompt).Draw(t, "answer"), IgnoreEOS: true,
		Tenant:   rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant"),
		Sampling: sample.Params{Temperature: rapid.SampledFrom([]float32{0, 1.5}).Draw(t, "temperature"), Seed: uint64(c.serial), RepetitionPenalty: 1.1},
	}
	for i := range prompt {
		// Many begin alike.
		r.Tokens = append(r.Tokens, int32('a'+(i*i+i*(c.serial%2))%5))
	}
	c.serial++
	s, err := c.e.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	c.live = append(c.live, &member{stream: s, want: alone(t, r)})
}

// alone is the answer of an engine that has nothing else to do.
func alone(t *rapid.T, r Request) []int32 {
	e, err := build(newRepeater(300), enginetest.Tokenizer{}, Config{NoLookup: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{stream: s}
	for !m.fed {
		e.settle()
		e.step()
		m.read(t, nil)
	}
	return m.got
}

func (c *crowd) step(t *rapid.T) {
	var first *sequence
	if len(c.e.loop.running) > 0 {
		first = c.e.loop.running[0]
	}
	// What is expected and how fast the machine is must not decide, or a failure could
	// not be repeated.
	c.e.outlook.length, c.e.outlook.accepted = c.length, 0
	c.e.loop.beside, c.e.loop.alone = schedule.NewThrottle(6, 1, 0), schedule.NewThrottle(mostPrompt, leastAlone, 0)
	c.e.settle()
	if first != nil && !first.ended && (first.table == nil || c.e.loop.running[0] != first) {
		t.Fatalf("the first to start gave way: %d blocks", c.blocks)
	}
	if len(c.e.loop.running) > 0 {
		c.checkRoom(t)
		c.e.step()
	}
	for _, m := range c.live {
		m.read(t, c.e)
	}
	c.live = slices.DeleteFunc(c.live, func(m *member) bool { return m.fed })
}

func (c *crowd) steps(t *rapid.T) {
	for range rapid.IntRange(2, 40).Draw(t, "steps") {
		c.step(t)
	}
}

// leave gives a request up, running, waiting or preempted.
func (c *crowd) leave(t *rapid.T) {
	if len(c.live) > 0 && rapid.IntRange(0, 3).Draw(t, "leave") == 0 {
		rapid.SampledFrom(c.live).Draw(t, "who").stream.Close()
	}
}

// checkRoom checks what a step relies on.
func (c *crowd) checkRoom(t *rapid.T) {
	for _, s := range c.e.loop.running {
		if s.table.Capacity() < len(s.tokens) {
			t.Fatalf("%d tokens in a table for %d", len(s.tokens), s.table.Capacity())
		}
	}
}

// check compares the books.
func (c *crowd) check(t *rapid.T) {
	l, held := &c.e.loop, make(map[int32]bool)
	for i, s := range l.running {
		if s.ended {
			continue
		}
		if i > 0 && l.running[i-1].started >= s.started || s.started == 0 || !s.awaySince.IsZero() {
			t.Fatalf("sequence %d runs as number %d", s.started, i)
		}
		for _, id := range s.table.Blocks() {
			held[id] = true
		}
	}
	pool := l.pool
	if len(held) != pool.InUse() || pool.InUse()+pool.Free() != c.blocks || pool.Cached() > pool.Free() {
		t.Fatalf("%d blocks held, %d in use, %d free and %d cached of %d", len(held), pool.InUse(), pool.Free(), pool.Cached(), c.blocks)
	}
	first := c.e.preempted()
	for i, s := range c.e.waiting {
		if s.table != nil || (s.started > 0) != (i < first) || s.started > 0 == s.awaySince.IsZero() {
			t.Fatalf("place %d of %d preempted: started %d, table %v", i, first, s.started, s.table)
		}
		if i > 0 && i < first && c.e.waiting[i-1].started >= s.started {
			t.Fatalf("sequence %d waits behind %d", s.started, c.e.waiting[i-1].started)
		}
	}
	if n := len(l.running) + first; n > c.e.limits.Running {
		t.Fatalf("%d have started, there are %d places", n, c.e.limits.Running)
	}
}

// finish runs on until all is done, in no more steps than that can take: at worst one
// answer runs at a time and is read again whole for each block that it grows.
func (c *crowd) finish(t *rapid.T) {
	for steps := 0; len(c.live) > 0; steps++ {
		if steps > 200_000 {
			t.Fatalf("%d answers do not end, %d preemptions", len(c.live), c.e.stats.Preemptions)
		}
		c.step(t)
		c.check(t)
	}
	c.e.settle()
	st := c.e.stats
	if st.BlocksUsed != 0 || st.Submitted != st.Completed+st.Cancelled || st.Failed != 0 {
		t.Fatalf("at the end %+v", st)
	}
	if most := kvcache.BlocksOf(c.blocks * model.BlockTokens); c.e.loop.pool.Free() != most {
		t.Fatalf("%d blocks free of %d", c.e.loop.pool.Free(), most)
	}
}

// read takes what the stream has. With an engine the answer must be the wanted one.
func (m *member) read(t *rapid.T, e *Engine) {
	for {
		event, ended := m.stream.take()
		switch ev := event.(type) {
		case nil:
			m.fed = ended
			return
		case Queued:
			if m.begun {
				t.Fatal("a place in the queue after the start")
			}
		case Scheduled:
			if m.begun {
				t.Fatal("scheduled twice")
			}
			m.begun, m.cached = true, ev.CachedTokens
		case Delta:
			m.got = append(m.got, ev.Tokens...)
		case Failed:
			t.Fatal(ev.Err)
		case Done:
			m.checkEnd(t, e, ev)
		}
	}
}

func (m *member) checkEnd(t *rapid.T, e *Engine, d Done) {
	u := d.Usage
	if u.OutputTokens != len(m.got) || u.CachedTokens != m.cached || u.Preemptions == 0 && (u.RecomputedTokens > 0 || d.Times.Preempted > 0) {
		t.Fatalf("%d tokens were told: %+v", len(m.got), d)
	}
	if e == nil {
		return
	}
	if len(m.got) > len(m.want) || !slices.Equal(m.got, m.want[:len(m.got)]) || d.Reason == ReasonLength && len(m.got) != len(m.want) {
		t.Fatalf("after %d preemptions %v (%s), alone %v", u.Preemptions, m.got, d.Reason, m.want)
	}
}
