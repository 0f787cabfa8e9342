package lexical

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ragd/ingest/postings"
)

// Lists of any shape give the sums of the plain formula, whatever windows their
// chunks fall into.
func TestScoreAgainstFormula(t *testing.T) {
	s := stats{chunks: 100, terms: 900}
	rapid.Check(t, func(t *rapid.T) {
		want := map[int64]float64{}
		var lists []list
		for range rapid.IntRange(0, 5).Draw(t, "lists") {
			weight := rapid.Float32Range(0.1, 10).Draw(t, "weight")
			var ps []postings.Posting
			chunk := int64(0)
			for range rapid.IntRange(0, 20).Draw(t, "n") {
				chunk += rapid.SampledFrom([]int64{1, 3, window - 1, window, 5 * window}).Draw(t, "gap")
				p := postings.Posting{Chunk: chunk, Count: rapid.Uint32Range(1, 9).Draw(t, "count"), Length: rapid.Uint32Range(1, 90).Draw(t, "length")}
				ps = append(ps, p)
				tf := float64(p.Count)
				want[chunk] += float64(weight) * tf / (tf + 1.2*(0.25+0.75*float64(p.Length)/9))
			}
			lists = append(lists, list{"", weight, postings.Append(nil, ps)})
		}
		last := int64(-1)
		err := score(lists, s, func(chunk int64, score float32) {
			if chunk <= last {
				t.Fatalf("chunk %d after %d", chunk, last)
			}
			last = chunk
			if math.Abs(float64(score)-want[chunk]) > 1e-4*want[chunk] {
				t.Fatalf("chunk %d: %g, want %g", chunk, score, want[chunk])
			}
			delete(want, chunk)
		})
		if err != nil || len(want) > 0 {
			t.Fatalf("%v; missing %v", err, want)
		}
	})
}

func TestScoreOfCorruptList(t *testing.T) {
	for _, data := range [][]byte{{1, 1}, {5, 1, 1, 0, 1, 1}} {
		if err := score([]list{{"", 1, data}}, stats{}, func(int64, float32) {}); err == nil {
			t.Errorf("%v was scored", data)
		}
	}
}

func TestTop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Matches{}
		for i := range rapid.IntRange(0, 60).Draw(t, "n") {
			m.list = append(m.list, Match{int64(i), float32(rapid.IntRange(0, 9).Draw(t, "score"))})
		}
		k := rapid.IntRange(-1, 70).Draw(t, "k")
		want := slices.Clone(m.list)
		slices.SortStableFunc(want, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
		if got := m.Top(k); !slices.Equal(got, want[:max(0, min(k, len(want)))]) {
			t.Fatalf("top %d of %v is %v", k, m.list, got)
		}
	})
}

func BenchmarkScore(b *testing.B) {
	var lists []list
	for i := range 20 {
		var ps []postings.Posting
		for chunk := int64(i + 1); chunk < 200_000; chunk += int64(10 + i) {
			ps = append(ps, postings.Posting{Chunk: chunk, Count: 1 + uint32(chunk%3), Length: 80 + uint32(chunk%128)})
		}
		lists = append(lists, list{"", 1, postings.Append(nil, ps)})
	}
	n := 0
	for b.Loop() {
		n = 0
		if err := score(lists, stats{200_000, 20_000_000}, func(int64, float32) { n++ }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n), "chunks")
}
