package bench

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Both sides are asked in turn, the first pair and refusals do not count, and the
// ratios are pair by pair.
func TestRunAgainst(t *testing.T) {
	var order string
	cfg := AgainstConfig{
		Questions: []string{"warm", "none", "a", "b", "spare"}, Pairs: 2, Progress: func(string) {},
		Ragd: func(_ context.Context, q string) (Reply, error) {
			order += q + "1 "
			r := Reply{Prompt: q, InputTokens: 9, OutputTokens: 3, Search: 2 * time.Millisecond, TTFT: 10 * time.Millisecond, Total: 30 * time.Millisecond}
			switch q {
			case "warm":
				r.Total = time.Hour
			case "none":
				r.OutputTokens = 0
			}
			return r, nil
		},
		Peer: func(_ context.Context, q string, like Reply) (Reply, error) {
			order += q + "2 "
			if like.Prompt != q {
				t.Errorf("%s is asked with the prompt of %s", q, like.Prompt)
			}
			like.TTFT, like.Total = 20*time.Millisecond, 60*time.Millisecond
			if q == "b" {
				like.Total = 40 * time.Millisecond
			}
			return like, nil
		},
	}
	r, err := RunAgainst(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if want := "warm1 warm2 none1 a1 a2 b1 b2 "; order != want {
		t.Errorf("asked %s, want %s", order, want)
	}
	got := map[string]Test{}
	for _, test := range r.Tests {
		got[test.Name] = test
	}
	if *got["total"].Ratio != (Spread{0.625, 0.5, 0.75}) || got["total"].Ragd.Max != 30 {
		t.Errorf("total %+v", got["total"])
	}
	if *got["per token"].Ratio != (Spread{0.75, 0.5, 1}) || got["input"].Ratio.Median != 1 {
		t.Errorf("%+v", r.Tests)
	}
}

func TestRunAgainstNeedsAnswers(t *testing.T) {
	refuse := func(context.Context, string) (Reply, error) { return Reply{}, nil }
	cfg := AgainstConfig{Questions: []string{"a", "b"}, Pairs: 1, Ragd: refuse, Progress: func(string) {}}
	if _, err := RunAgainst(t.Context(), cfg); !errors.Is(err, ErrTooFewPairs) {
		t.Errorf("%v, want ErrTooFewPairs", err)
	}
	gone := errors.New("gone")
	cfg.Ragd = func(context.Context, string) (Reply, error) { return Reply{}, gone }
	if _, err := RunAgainst(t.Context(), cfg); !errors.Is(err, gone) {
		t.Errorf("%v, want the failure of the side", err)
	}
}
