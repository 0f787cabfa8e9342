package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Reply is one question answered by one of two pipelines. The times are taken by
// the client, from sending the question on.
type Reply struct {
	// Prompt is what the model read, as text.
	Prompt                    string
	InputTokens, OutputTokens int
	// Search is embedding the question and finding chunks.
	Search, TTFT, Total time.Duration
}

// AgainstConfig says what is compared.
type AgainstConfig struct {
	Commit    string
	Machine   Machine
	Questions []string
	// Pairs is how many questions count; each is asked once on each side, so that no
	// side finds a whole prompt in its cache.
	Pairs int
	// Ragd answers a question; Peer answers it after that, from the same prompt and at
	// the same length.
	Ragd     func(ctx context.Context, question string) (Reply, error)
	Peer     func(ctx context.Context, question string, like Reply) (Reply, error)
	Progress func(string)
}

// ErrTooFewPairs: the questions ran out before enough of them were answered by a model.
var ErrTooFewPairs = errors.New("too few questions got a generated answer")

// RunAgainst asks both pipelines in turn, A B A B. The first pair warms both up and
// does not count; questions that the model has no part in (a refusal) are left out.
func RunAgainst(ctx context.Context, cfg AgainstConfig) (Report, error) {
	var rows against
	counted := -1
	for _, question := range cfg.Questions {
		if counted == cfg.Pairs {
			break
		}
		cfg.Progress(fmt.Sprintf("pair %d of %d", counted+1, cfg.Pairs))
		a, err := cfg.Ragd(ctx, question)
		if err != nil {
			return Report{}, fmt.Errorf("ragd: %w", err)
		}
		if a.OutputTokens == 0 {
			continue
		}
		b, err := cfg.Peer(ctx, question, a)
		if err != nil {
			return Report{}, err
		}
		if counted++; counted > 0 {
			rows.add(a, b)
		}
	}
	if counted < cfg.Pairs {
		return Report{}, fmt.Errorf("%w: %d of %d", ErrTooFewPairs, max(counted, 0), cfg.Pairs)
	}
	return Report{Commit: cfg.Commit, Machine: cfg.Machine, Tests: rows.tests()}, nil
}

// against collects the pairs of every figure.
type against struct{ total, ttft, search, rest, perToken, input, output pairs }

func (r *against) add(a, b Reply) {
	r.total.add(inMS(a.Total), inMS(b.Total))
	r.ttft.add(inMS(a.TTFT), inMS(b.TTFT))
	r.search.add(inMS(a.Search), inMS(b.Search))
	r.rest.add(inMS(a.TTFT-a.Search), inMS(b.TTFT-b.Search))
	if a.OutputTokens > 1 && b.OutputTokens > 1 {
		r.perToken.add(perToken(a), perToken(b))
	}
	r.input.add(float64(a.InputTokens), float64(b.InputTokens))
	r.output.add(float64(a.OutputTokens), float64(b.OutputTokens))
}

func perToken(r Reply) float64 { return inMS(r.Total-r.TTFT) / float64(r.OutputTokens-1) }

func inMS(d time.Duration) float64 { return float64(d) / 1e6 }

func (r *against) tests() []Test {
	tests := []Test{
		r.total.test("total", "ms"), r.ttft.test("ttft", "ms"), r.search.test("embed+search", "ms"), r.rest.test("to first token", "ms"),
	}
	if len(r.perToken.ragd) > 0 {
		tests = append(tests, r.perToken.test("per token", "ms"))
	}
	return append(tests, r.input.test("input", "tokens"), r.output.test("output", "tokens"))
}
