package telemetry

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawTimings makes a ledger whose stages fit the total, as requests make them.
func drawTimings(t *rapid.T) Timings {
	micros := rapid.Int64Range(0, int64(time.Hour/time.Microsecond))
	var out Timings
	for s := range stages {
		out.stage[s] = time.Duration(micros.Draw(t, s.String())) * time.Microsecond
	}
	for _, s := range disjoint {
		out.Total += out.stage[s]
	}
	out.Total += time.Duration(micros.Draw(t, "other")) * time.Microsecond
	out.TTFT = time.Duration(micros.Draw(t, "ttft")) * time.Microsecond
	out.LLMTTFT = time.Duration(micros.Draw(t, "llm_ttft")) * time.Microsecond
	out.TPOT = time.Duration(micros.Draw(t, "tpot")) * time.Microsecond
	return out
}

func TestTimingsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTimings(t)
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got Timings
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%+v became %+v by %s", want, got, data)
		}
	})
}

// TestTimingsAddUp: in every form the stages and the rest are the total.
func TestTimingsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTimings(t)
		var sum time.Duration
		for _, r := range want.Rows() {
			sum += r.Duration
		}
		if sum != want.Total {
			t.Errorf("rows sum to %v, the total is %v", sum, want.Total)
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]*float64
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		written := 0.0
		for _, name := range []string{"retrieval", "rerank", "pack", "render", "queue", "prefill", "decode", "other"} {
			written += *fields[name+"_ms"]
		}
		if math.Abs(written-*fields["total_ms"]) > 1 {
			t.Errorf("%s sums to %v", data, written)
		}
	})
}

// TestTimesThatDidNotHappenAreNull, not 0: 0 would spoil percentiles.
func TestTimesThatDidNotHappenAreNull(t *testing.T) {
	data, err := json.Marshal(Timings{Total: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"ttft_ms", "llm_ttft_ms", "tpot_ms"} {
		if !strings.Contains(string(data), `"`+field+`":null`) {
			t.Errorf("%s is not null in %s", field, data)
		}
	}
	var back Timings
	if err := json.Unmarshal([]byte(`{"total_ms":"long"}`), &back); err == nil {
		t.Error("a wrong type was read")
	}
}

func TestServerTiming(t *testing.T) {
	var timings Timings
	timings.stage[StageEmbed] = time.Second // inside retrieval, so not shown apart
	timings.stage[StageRetrieval] = 1500 * time.Microsecond
	timings.stage[StagePrefill] = 2 * time.Second
	if got, want := timings.ServerTiming(), "retrieval;dur=1.500, prefill;dur=2000.000"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (Timings{}).ServerTiming(); got != "" {
		t.Errorf("nothing took time: %q", got)
	}
}
