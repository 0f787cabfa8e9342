package answer

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ragd/retrieve"
	"ragd/telemetry/cost"
)

// meteredGenerator says what the engine's time was.
type meteredGenerator struct{ *fakeGenerator }

func (m meteredGenerator) Generate(ctx context.Context, req Generation, emit func(Event)) (Generated, error) {
	out, err := m.fakeGenerator.Generate(ctx, req, emit)
	out.Machine = Machine{Prefill: 100 * time.Millisecond, Decode: 300 * time.Millisecond}
	return out, err
}

// TestCostOfAnAnswer: the body has what the prices make of its own usage, a question
// that the model wrote anew included, and the log row has the same.
func TestCostOfAnAnswer(t *testing.T) {
	tokens := cost.Prices{Currency: "USD", Input: 1_000_000_000, CachedInput: 100_000_000, Output: 4_000_000_000}
	hour := cost.Prices{Currency: "KRW", MachineHour: 3_600_000_000_000}
	for _, c := range []struct {
		name   string
		prices cost.Prices
		req    Request
		hits   []retrieve.Hit
		runs   int // of the engine
	}{
		{"answered", tokens, Request{Question: "How much?"}, twoChunks, 1},
		{"by the hour", hour, Request{Question: "How much?"}, twoChunks, 1},
		{"rewritten", tokens, Request{Question: "How much does it lift?", History: craneTalk}, twoChunks, 2},
		{"rewritten by the hour", hour, Request{Question: "How much does it lift?", History: craneTalk}, twoChunks, 2},
		{"refused", tokens, Request{Question: "How much?"}, nil, 0},
		{"extracted", hour, Request{Question: "How much?", AnswerMode: ModeExtract}, twoChunks, 0},
		{"without prices", cost.Prices{Currency: "USD"}, Request{Question: "How much?"}, twoChunks, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			gen := &fakeGenerator{rewriting: "How much does the crane lift?", pieces: []string{"Four", "teen."}}
			r := newRig(t, c.hits, gen)
			r.Generator, r.cfg.Prices, r.cfg.Rewrite = meteredGenerator{gen}, c.prices, RewriteModel
			res, _ := ask(t, r, c.req)
			u := res.Usage
			used := cost.Used{
				InputTokens: u.InputTokens, CachedTokens: u.CachedTokens, OutputTokens: u.OutputTokens,
				Prefill: time.Duration(c.runs) * 100 * time.Millisecond, Decode: time.Duration(c.runs) * 300 * time.Millisecond,
			}
			if u.Rewrite != nil {
				used.InputTokens += u.Rewrite.InputTokens
				used.CachedTokens += u.Rewrite.CachedTokens
				used.OutputTokens += u.Rewrite.OutputTokens
			}
			want := c.prices.Of(used)
			if (u.Rewrite != nil) != (c.runs == 2) || (u.Cost == nil) != (want == nil) || want != nil && *u.Cost != *want {
				t.Fatalf("%+v costs %+v, want %+v", u, u.Cost, want)
			}
			if want != nil && (want.Total == 0) != (c.runs == 0) {
				t.Errorf("%d runs cost %v", c.runs, want.Total)
			}
			var row struct{ Cost *cost.Cost }
			line, _, _ := strings.Cut(r.log.String(), "\n")
			if err := json.Unmarshal([]byte(line), &row); err != nil || (row.Cost == nil) != (want == nil) || want != nil && *row.Cost != *want {
				t.Errorf("the log row has %+v, %v", row.Cost, err)
			}
		})
	}
}
