package bench

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestSpreadOf(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{[]float64{3}, Spread{3, 3, 3}},
		{[]float64{9, 1, 5}, Spread{5, 1, 9}},
		{[]float64{4, 1, 2, 9}, Spread{3, 1, 9}},
	} {
		if got := SpreadOf(c.values); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
		}
	}
}

func TestPercentile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(0, 100), 1, 50).Draw(t, "values")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		slices.Sort(v)
		got := Percentile(v, p)
		below := 0
		for _, x := range v {
			if x <= got {
				below++
			}
		}
		if float64(below) < p*float64(len(v))-1e-9 || !slices.Contains(v, got) {
			t.Fatalf("percentile %v of %v is %v", p, v, got)
		}
	})
	if got := Percentile([]float64{1, 2, 3, 4}, 0.5); got != 2 {
		t.Errorf("median of four by nearest rank: %v, want 2", got)
	}
}

func TestRatiosArePairByPair(t *testing.T) {
	var p pairs
	p.add(100, 50)
	p.add(60, 20)
	p.add(10, 10)
	got := p.test("pp512", "tok/s")
	if *got.Ratio != (Spread{2, 1, 3}) || *got.Peer != (Spread{20, 10, 50}) || got.Ragd.Median != 60 {
		t.Errorf("%+v, peer %+v, ratio %+v", got.Ragd, got.Peer, got.Ratio)
	}
	p = pairs{}
	p.add(5, 0)
	if got := p.test("pp512", "tok/s"); got.Peer != nil || got.Ratio != nil {
		t.Errorf("a peer without having run: %+v", got)
	}
}

func TestTestNames(t *testing.T) {
	for name, want := range map[string]shape{
		"pp512": {prompt: 512}, "tg64": {generate: 64}, "tg64@d2048": {generate: 64, depth: 2048}, "pp128@d16": {prompt: 128, depth: 16},
	} {
		if got, ok := parseShape(name); !ok || got != want {
			t.Errorf("%s: %+v %v, want %+v", name, got, ok, want)
		}
	}
	if err := CheckTests(EngineTests); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "pp", "pp0", "tg64@d", "xx5", "streams", "streams0", "pp512 ", "PP512", "pp12345678"} {
		if err := CheckTests([]string{"pp1", name}); err == nil || !strings.Contains(err.Error(), "no such test") {
			t.Errorf("%q: %v, want an error", name, err)
		}
	}
}

func TestParseLlamaBench(t *testing.T) {
	if got, err := parseLlamaBench([]byte(`[{"n_prompt":512,"avg_ns":9,"avg_ts":231.5,"stddev_ts":0}]`)); err != nil || got != 231.5 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "[]", "no json", `[{"avg_ts":1},{"avg_ts":2}]`, `[{"avg_ts":0}]`, `{"avg_ts":1}`} {
		if _, err := parseLlamaBench([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestOfPeak(t *testing.T) {
	b := &engineBench{}
	b.model.Layers, b.model.Width, b.model.Heads, b.model.KVHeads, b.model.HeadDim, b.model.FeedForward = 2, 8, 2, 1, 4, 16
	b.model.Weights = 1000
	const m = 1e-6 // 1,000 a second
	// Weights 8·(2·8 + 2·4) + 3·8·16 = 576; attention 4·(100 + 5)·8 = 3,360 a layer.
	if got, want := b.ofPeak(shape{prompt: 10, depth: 100}, 1, m, m), 2*(2*576+3360)/1000.0; math.Abs(got-want) > 1e-12 {
		t.Errorf("prompt: %v, want %v", got, want)
	}
	// 1,000 bytes of weights, (100 + 5) positions of 2·1·4·2·2 bytes.
	if got, want := b.ofPeak(shape{generate: 10, depth: 100}, 1, m, m), (1000+105*32)/1000.0; math.Abs(got-want) > 1e-12 {
		t.Errorf("decoding: %v, want %v", got, want)
	}
}

// Shares on a device are of its own peaks: int8 for quantised weights, float16 for
// others, none where the device does not say.
func TestOfTheDevicesPeak(t *testing.T) {
	b := &engineBench{device: "cuda:0", quantized: true, peak: &Peak{GBs: 2e-6, Int8: 4e-6, Float16: 8e-6}}
	b.model.Layers, b.model.Width, b.model.Heads, b.model.KVHeads, b.model.HeadDim, b.model.FeedForward = 2, 8, 2, 1, 4, 16
	b.model.Weights = 1000
	shares := func() [3]float64 {
		r := Report{Machine: Machine{GBs: 1, GOPs: 1}, Tests: []Test{
			{Name: "pp10@d100", Ragd: Spread{1, 1, 1}}, {Name: "tg10@d100", Ragd: Spread{1, 1, 1}}, {Name: "streams8", Ragd: Spread{1, 1, 1}},
		}}
		b.compareToPeak(&r)
		var out [3]float64
		for i := range r.Tests {
			if r.Tests[i].OfPeak != nil {
				out[i] = math.Round(*r.Tests[i].OfPeak * 1e6)
			}
		}
		return out
	}
	prompt, decode := 2*(2*576+3360)/4e3, (1000+105*32)/2e3
	if got := shares(); got != [3]float64{math.Round(prompt * 1e6), math.Round(decode * 1e6), 0} {
		t.Errorf("quantised: %v", got)
	}
	b.quantized = false
	if got := shares(); got != [3]float64{math.Round(prompt / 2 * 1e6), math.Round(decode * 1e6), 0} {
		t.Errorf("float: %v", got)
	}
	b.peak.Float16 = 0
	if got := shares(); got != [3]float64{0, math.Round(decode * 1e6), 0} {
		t.Errorf("arithmetic that is not known: %v", got)
	}
	b.peak = nil
	if got := shares(); got != [3]float64{} {
		t.Errorf("a device that does not say: %v", got)
	}
}

func TestPicturesAreWellFormed(t *testing.T) {
	peer := Spread{20, 10, 50}
	r := Report{Tests: []Test{
		{Name: "pp512", Ragd: Spread{60, 10, 100}, Peer: &peer},
		{Name: "tg64", Ragd: Spread{6, 1, 10}},
		{Name: "streams8", Ragd: Spread{6, 1, 10}},
		{Name: "lookup", Ragd: Spread{6, 1, 10}},
	}}
	var bars, scatter bytes.Buffer
	if err := errors.Join(WriteBars(&bars, r), WriteScatter(&scatter, []Point{{10, 20}, {1000, 300}}, "a < b", "y")); err != nil {
		t.Fatal(err)
	}
	for picture, want := range map[string]int{bars.String(): 5, scatter.String(): 1} { // with the background
		rects := 0
		d := xml.NewDecoder(strings.NewReader(picture))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in %s", err, picture)
			}
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
				rects++
			}
		}
		if rects != want {
			t.Errorf("%d rectangles, want %d in %s", rects, want, picture)
		}
	}
}

// Requests leave at their moments whether earlier ones are answered or not.
func TestAskIsAnOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		cfg := AskConfig{
			Questions: []string{"a", "b", "fail"}, Requests: 400, Rate: 10, Seed: 1, Progress: func(string) {},
			Ask: func(_ context.Context, q string) (Asked, error) {
				if q == "fail" {
					return Asked{}, errors.New("busy")
				}
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second)
				running.Add(-1)
				return Asked{Stages: []Stage{{"prefill", 250}, {"total", 1000}}, InputTokens: 900, TTFT: 300}, nil
			},
		}
		r, err := RunAsk(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if r.Requests != 400 || r.Failed == 0 || r.Failed != r.Errors["busy"] || len(r.Points) != 400-r.Failed {
			t.Errorf("%+v", r)
		}
		if math.Abs(r.Rate-10) > 2 {
			t.Errorf("%v requests a second, want about 10", r.Rate)
		}
		if most.Load() < 5 {
			t.Errorf("%d at once at the most: the sender waited for answers", most.Load())
		}
		if want := (StageSpread{"total", 1000, 1000, 1000, 1000}); len(r.Stages) != 2 || r.Stages[1] != want {
			t.Errorf("stages %+v, want the last %+v", r.Stages, want)
		}
	})
}

func TestAskFailsWhenAllFails(t *testing.T) {
	cfg := AskConfig{
		Questions: []string{"q"}, Requests: 3, Rate: 1e6, Progress: func(string) {},
		Ask: func(context.Context, string) (Asked, error) { return Asked{}, errors.New("no database") },
	}
	if _, err := RunAsk(t.Context(), cfg); !errors.Is(err, ErrNothingAnswered) || !strings.Contains(err.Error(), "no database") {
		t.Errorf("%v, want ErrNothingAnswered with its cause", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := RunAsk(ctx, cfg); err == nil || r.Requests != 0 {
		t.Errorf("%d sent after the end, %v", r.Requests, err)
	}
}
