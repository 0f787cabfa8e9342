//go:build cuda && cgo

package cuda

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"ragd/inference/model"
	"ragd/inference/sample"
)

// bestOf chooses from rows of logits.
func bestOf(t *testing.T, logits [][]float32, k int) []model.Best {
	t.Helper()
	b := newBackend(t)
	rows, width := len(logits), len(logits[0])
	k = min(k, width)
	begin(b, rows)
	at := b.reserve(&b.output, int64(4*rows*width))
	put(t, b, at, slices.Concat(logits...))
	all, err := b.flush(b.choose(at, rows, width, k), rows*(k+1)*keyBytes)
	if err != nil {
		t.Fatal(err)
	}
	return b.readBest(all, rows, k)
}

// The largest logits come in the host's order, with ties, zeros of both signs and
// infinities, for vocabularies around a chunk and beyond what two rounds hold.
func TestBestLogitsMatchASort(t *testing.T) {
	inBothOrders(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(25, 26))
		for _, width := range []int{1, 5, 1023, 1025, 20000} {
			for _, k := range []int{1, 64} {
				logits := make([][]float32, 3)
				for r := range logits {
					logits[r] = random(rng, width)
					for i := range logits[r] {
						logits[r][i] = float32(math.Round(float64(logits[r][i])*8)) / 8
					}
				}
				logits[1][0] = float32(math.Copysign(0, -1))
				logits[2][width-1] = float32(math.Inf(-1))
				for r, got := range bestOf(t, logits, k) {
					checkBest(t, got, logits[r], k)
				}
			}
		}
	})
}

func checkBest(t *testing.T, got model.Best, row []float32, k int) {
	t.Helper()
	ids := make([]int32, len(row))
	sum, top := 0.0, float64(slices.Max(row))
	for i := range ids {
		ids[i] = int32(i)
		sum += math.Exp(float64(row[i]) - top)
	}
	sort.SliceStable(ids, func(i, j int) bool { return row[ids[i]] > row[ids[j]] })
	ids = ids[:min(k, len(ids))]
	if !slices.Equal(got.IDs, ids) {
		t.Fatalf("width %d: ids %v, want %v", len(row), got.IDs, ids)
	}
	for i, id := range ids {
		if got.Logits[i] != row[id] {
			t.Fatalf("width %d: logit %g of token %d, want %g", len(row), got.Logits[i], id, row[id])
		}
	}
	if want := top + math.Log(sum); !(math.Abs(got.LogSum-want) < 1e-5*max(1, math.Abs(want))) && len(row) > 1 {
		t.Errorf("width %d: log sum %g, want %g", len(row), got.LogSum, want)
	}
}

// A NaN anywhere in a row is seen by the sampler.
func TestBestLogitsShowNaN(t *testing.T) {
	row := make([]float32, 3000)
	row[2999] = float32(math.Copysign(math.NaN(), -1))
	best := bestOf(t, [][]float32{row}, 1)
	s, err := sample.New(sample.Params{}, len(row))
	if err != nil {
		t.Fatal(err)
	}
	if id, err := s.SampleBest(best[0].IDs, best[0].Logits); err == nil {
		t.Errorf("drew %d", id)
	}
}

// The tiny model gives the largest of its own logits, also when its steps are replayed,
// beside steps that give all.
func TestForwardBestIsForward(t *testing.T) {
	path := writeTiny(t)
	whole, err := loadTiny(path, newBackend(t))
	if err != nil {
		t.Fatal(err)
	}
	best, err := loadTiny(path, newBackend(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range tinySteps {
		want, err := whole.Forward(batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []int{1, 64} {
			got, err := best.ForwardBest(batch, k)
			if err != nil || len(got) != len(want) {
				t.Fatal(len(got), err)
			}
			for r := range got {
				checkBest(t, got[r], want[r], k)
			}
		}
	}
	if _, err := best.ForwardBest(tinySteps[0], 65); err == nil {
		t.Error("65 of the largest logits")
	}
}
