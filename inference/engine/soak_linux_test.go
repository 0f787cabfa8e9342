//go:build soak

package engine_test

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"ragd/inference/engine"
	"ragd/inference/sample"
)

const (
	soakRequests = 10_000
	soakEvery    = 1000
	// soakTime bounds it; a machine that is too slow fails rather than passes.
	soakTime = 25 * time.Minute
)

// TestSoak answers 10,000 short requests with the starter model, some of them
// sampled, some with a prefix in common, some given up, and fails when the memory of
// the process grows with their number: when the slope of a straight line through
// what it takes after each thousand is beyond three times its standard error and
// more than a megabyte over the run. The first thousand fill caches and scratch and
// are left out.
func TestSoak(t *testing.T) {
	e, tok := smolLM2(t, engine.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), soakTime)
	defer cancel()
	random := rand.New(rand.NewPCG(1, 1))
	opening := chat(tok, evidence)
	var mib []float64
	running := make(chan *engine.Stream, 8)
	ended := make(chan error)
	for range cap(running) {
		go func() {
			for s := range running {
				ended <- exhaust(ctx, s)
			}
		}()
	}
	began := time.Now()
	for sent, done := 0, 0; done < soakRequests; {
		if sent < soakRequests && sent-done < cap(running) {
			s, err := e.Submit(ctx, soakRequest(random, sent, opening))
			if err != nil {
				t.Fatal(err)
			}
			if sent%13 == 0 {
				s.Close()
			}
			sent++
			running <- s
			continue
		}
		if err := <-ended; err != nil {
			t.Fatalf("after %d requests and %v: %v", done, time.Since(began), err)
		}
		if done++; done%soakEvery == 0 {
			mib = append(mib, resident(t))
			t.Logf("%6d requests, %5.0f s, %.2f MiB resident, %d blocks used", done, time.Since(began).Seconds(), mib[len(mib)-1], e.Stats().BlocksUsed)
		}
	}
	close(running)
	slope, err := line(mib[1:])
	t.Logf("%+.3f ± %.3f MiB a thousand requests", slope, err)
	if slope > 3*err && slope*float64(len(mib)-1) > 1 {
		t.Errorf("memory grows by %.3f ± %.3f MiB a thousand requests: %.2f", slope, err, mib)
	}
}

// soakRequest is a short prompt of random tokens, now and then behind a long opening
// that all have in common.
func soakRequest(random *rand.Rand, n int, opening []int32) engine.Request {
	r := engine.Request{MaxTokens: 1 + random.IntN(4), Sampling: sample.Params{Seed: uint64(n)}, Tenant: strconv.Itoa(n % 3)}
	if n%4 == 0 {
		r.Tokens = append(r.Tokens, opening...)
	}
	if n%5 == 0 {
		r.Sampling.Temperature = 0.8
	}
	for range 4 + random.IntN(16) {
		r.Tokens = append(r.Tokens, 100+random.Int32N(40_000))
	}
	return r
}

// exhaust reads a stream to its end.
func exhaust(ctx context.Context, s *engine.Stream) error {
	for {
		event, err := s.Next(ctx)
		if err != nil {
			return err
		}
		switch e := event.(type) {
		case engine.Done:
			return nil
		case engine.Failed:
			return e.Err
		}
	}
}

// resident is VmRSS in MiB, without garbage.
func resident(t *testing.T) float64 {
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(string(bytes.Fields(statm)[1]))
	if err != nil {
		t.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

// line is the slope of the least-squares line through equally spaced values, and
// its standard error.
func line(y []float64) (slope, err float64) {
	n := float64(len(y))
	var sum, sxy, sxx float64
	for i, v := range y {
		sum += v
		x := float64(i) - (n-1)/2
		sxy += x * v
		sxx += x * x
	}
	slope = sxy / sxx
	var rest float64
	for i, v := range y {
		d := v - sum/n - slope*(float64(i)-(n-1)/2)
		rest += d * d
	}
	return slope, math.Sqrt(rest / (n - 2) / sxx)
}
