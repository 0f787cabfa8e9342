// Package bench measures speed: of the engine, of embeddings, and of the whole
// question road. Every figure is a median with its spread over repetitions, and a
// comparison is made of pairs that ran in turn, A B A B, so that what else the
// machine does hits both sides alike.
package bench

import (
	"math"
	"slices"
)

// Report is the result of a measuring command (DESIGN §9, the bench form).
type Report struct {
	Commit  string  `json:"commit"`
	Machine Machine `json:"machine"`
	// CacheType is how keys and values were kept, where that was not f16.
	CacheType string `json:"kv_cache_type,omitempty"`
	Tests     []Test `json:"tests"`
}

// Machine is what was measured on, and what it can do at the most.
type Machine struct {
	CPU string `json:"cpu"`
	// Device is the GPU that computed, if one did.
	Device  string `json:"device,omitempty"`
	Threads int    `json:"threads"`
	// GBs is memory read by all threads, in 10⁹ bytes a second.
	GBs float64 `json:"gb_s"`
	// GOPs is int8 multiplications and additions by all threads out of the cache, in
	// 10⁹ a second, as fast as the kernels in use can.
	GOPs float64 `json:"gop_s"`
	// Peak is what Device can do at the most, if one computed and says so.
	Peak *Peak `json:"device_peak,omitempty"`
}

// Peak is what a device can do at the most, computed from the clocks and widths that its
// driver reports: nothing was measured.
type Peak struct {
	// GBs is memory read, in 10⁹ bytes a second.
	GBs float64 `json:"gb_s"`
	// Int8 and Float16 are multiplications and additions, in 10⁹ a second; 0 where not
	// known.
	Int8    float64 `json:"int8_gop_s"`
	Float16 float64 `json:"float16_gop_s"`
}

// Test is one line. Names are those of llama-bench where it has them.
type Test struct {
	Name string  `json:"name"`
	Unit string  `json:"unit"`
	Ragd Spread  `json:"ragd"`
	Peer *Spread `json:"peer,omitempty"`
	// Ratio is ragd's value over the peer's, pair by pair. For a test that compares
	// ragd with itself it is over the other way of doing it: warm_prefix over a cold
	// one, gap over that of the same answer with no prompt beside, lookup and lookup_free over decoding without, no_kv_cache over decoding with a cache.
	Ratio *Spread `json:"ratio,omitempty"`
	// OfPeak is the median's share of what the machine, or the device that computed, can
	// do: of its memory speed for decoding, of its arithmetic for prompts.
	OfPeak *float64 `json:"of_peak,omitempty"`
	// Detail says what else was seen in the last run.
	Detail string `json:"detail,omitempty"`
}

// Spread is a median with the smallest and the largest value.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf summarises at least one value.
func SpreadOf(values []float64) Spread {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Spread{Median: (v[(n-1)/2] + v[n/2]) / 2, Min: v[0], Max: v[n-1]}
}

// Percentile is the smallest of the sorted values that a share p (0 to 1) of them
// does not exceed (nearest rank).
func Percentile(sorted []float64, p float64) float64 {
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// pairs collects the values of one test.
type pairs struct{ ragd, peer, ratio []float64 }

func (p *pairs) add(ragd, peer float64) {
	p.ragd = append(p.ragd, ragd)
	if peer > 0 {
		p.peer = append(p.peer, peer)
		p.ratio = append(p.ratio, ragd/peer)
	}
}

func (p *pairs) test(name, unit string) Test {
	t := Test{Name: name, Unit: unit, Ragd: SpreadOf(p.ragd)}
	if len(p.peer) > 0 {
		peer := SpreadOf(p.peer)
		t.Peer = &peer
	}
	if len(p.ratio) > 0 {
		ratio := SpreadOf(p.ratio)
		t.Ratio = &ratio
	}
	return t
}
