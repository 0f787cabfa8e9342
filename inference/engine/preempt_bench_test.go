package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ragd/inference/cpu"
	"ragd/inference/engine"
)

const (
	crowdRequests = 24
	crowdAnswer   = 512 // the longest that a request allows
)

// BenchmarkSmallCache asks 24 questions of about 80 tokens at once on the starter model
// with a cache of 1,600 tokens; each may be answered in 512 tokens. In "short" answers
// take 16 to 64 tokens, in "long" all of 512, which is the worst that growing blocks
// meets. Both ways of admission run in turn, and the ratio is told: tokens of answers a
// second, and the 95th percentile of the time to the first token.
func BenchmarkSmallCache(b *testing.B) {
	for _, c := range []struct {
		name        string
		least, most int
	}{{"short", 16, 64}, {"long", crowdAnswer, crowdAnswer}} {
		b.Run(c.name, func(b *testing.B) {
			var rate, first [2][]float64
			var preemptions, recomputed int64
			for b.Loop() {
				for i, reserve := range []bool{true, false} {
					e, tok := smolLM2Cache(b, 100, cpu.Config{}, engine.Config{NoPreemption: reserve})
					run := crowdOf(b, e, func(random *rand.Rand, n int) (engine.Request, int) {
						question := fmt.Sprintf("Question %d. %sWhat do you know of it?", random.IntN(1000), evidence)
						return engine.Request{Tokens: chat(tok, question), MaxTokens: crowdAnswer, IgnoreEOS: true, NoLookup: true}, c.least + n%(c.most-c.least+1)
					})
					rate[i], first[i] = append(rate[i], run.rate), append(first[i], run.first)
					preemptions, recomputed = preemptions+e.Stats().Preemptions, recomputed+e.Stats().RecomputedTokens
					if err := e.Close(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
			}
			for i, name := range []string{"reserved", "grown"} {
				b.ReportMetric(median(rate[i]), name+"-tok/s")
				b.ReportMetric(median(first[i])*1e3, name+"-p95-ttft-ms")
			}
			b.ReportMetric(median(rate[1])/median(rate[0]), "tok/s-ratio")
			b.ReportMetric(median(first[1])/median(first[0]), "ttft-ratio")
			b.ReportMetric(float64(preemptions)/float64(b.N), "preemptions/op")
			b.ReportMetric(float64(recomputed)/float64(b.N), "recomputed/op")
		})
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// crowded is what a crowd met.
type crowded struct {
	rate  float64 // tokens of answers a second
	first float64 // 95th percentile of the seconds to the first token
}

// crowdOf submits all requests at once. An answer is given up where it has the length
// that next says, as if the model had ended it.
func crowdOf(b *testing.B, e *engine.Engine, next func(random *rand.Rand, n int) (engine.Request, int)) crowded {
	random := rand.New(rand.NewPCG(1, 2))
	type end struct {
		tokens int
		first  time.Duration
		err    error
	}
	ends := make(chan end)
	began := time.Now()
	for range crowdRequests {
		r, length := next(random, random.IntN(1000))
		s, err := e.Submit(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			var last end
			for last.tokens < length {
				event, err := s.Next(context.Background())
				if err != nil {
					last.err = err
					break
				}
				if d, ok := event.(engine.Delta); ok {
					if last.tokens == 0 {
						last.first = time.Since(began)
					}
					last.tokens += len(d.Tokens)
				}
			}
			s.Close()
			ends <- last
		}()
	}
	var firsts []float64
	tokens := 0
	for range crowdRequests {
		last := <-ends
		if last.err != nil {
			b.Fatal(last.err)
		}
		tokens += last.tokens
		firsts = append(firsts, last.first.Seconds())
	}
	slices.Sort(firsts)
	return crowded{rate: float64(tokens) / time.Since(began).Seconds(), first: firsts[len(firsts)*95/100]}
}
