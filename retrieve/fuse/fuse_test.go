package fuse

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func order(scores []Score) []int {
	at := make([]int, len(scores))
	for i := range at {
		at[i] = i
	}
	slices.SortStableFunc(at, func(a, b int) int {
		switch {
		case scores[a].Fused > scores[b].Fused:
			return -1
		case scores[a].Fused < scores[b].Fused:
			return 1
		}
		return 0
	})
	return at
}

func near(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 }

// Worked by hand: cosines of the dense list span .80 to .90, BM25 reaches 10.
func TestConvexCombination(t *testing.T) {
	list := []Candidate{
		{Cosine: 0.90, DenseRank: 1, BM25: 0},
		{Cosine: 0.85, DenseRank: 2, BM25: 10, LexicalRank: 1},
		{Cosine: 0.80, DenseRank: 3, BM25: 5, LexicalRank: 2},
		{Cosine: 0.79, BM25: 4, LexicalRank: 3},
	}
	want := []Score{{0.5, 1, 0}, {0.75, 0.5, 1}, {0.25, 0, 0.5}, {0.2, 0, 0.4}}
	for i, got := range ConvexCombination(list, 0.5) {
		if !near(got.Fused, want[i].Fused) || !near(got.Dense, want[i].Dense) || !near(got.Lexical, want[i].Lexical) {
			t.Errorf("candidate %d: %+v, want %+v", i, got, want[i])
		}
	}
}

// The words decide for a chunk that lies far outside of a narrow dense list.
func TestFarChunkWithTheWords(t *testing.T) {
	list := []Candidate{
		{Cosine: 0.861, DenseRank: 1},
		{Cosine: 0.860, DenseRank: 2},
		{Cosine: 0.859, DenseRank: 3},
		{Cosine: 0.700, BM25: 9, LexicalRank: 1},
	}
	if got := order(ConvexCombination(list, 0.4)); got[0] != 3 {
		t.Errorf("order %v", got)
	}
}

func TestReciprocalRanks(t *testing.T) {
	got := ReciprocalRanks([]Candidate{{DenseRank: 1, LexicalRank: 2, BM25: 3}, {DenseRank: 2}, {LexicalRank: 1, BM25: 4}}, 0.5)
	for i, want := range []float32{0.5/61 + 0.5/62, 0.5 / 62, 0.5 / 61} {
		if !near(got[i].Fused, want) {
			t.Errorf("candidate %d: %g, want %g", i, got[i].Fused, want)
		}
	}
}

// First trap: chunks without a word of the question may be listed in some order;
// that order must count for nothing.
func TestZeroScoresHaveNoRank(t *testing.T) {
	list := []Candidate{
		{Cosine: 0.9, DenseRank: 1, LexicalRank: 3},
		{Cosine: 0.8, DenseRank: 2, LexicalRank: 1},
		{Cosine: 0.7, DenseRank: 3, LexicalRank: 2},
	}
	for _, m := range []Method{Convex, ReciprocalRank} {
		scores, err := Fuse(m, list, 0.5)
		if err != nil || !slices.Equal(order(scores), []int{0, 1, 2}) {
			t.Errorf("%s: order %v (%v), want that of the cosines", m, order(scores), err)
		}
	}
}

// Second trap: with few lexical matches a scale made of their spread breaks down.
func TestFewLexicalMatches(t *testing.T) {
	for matches := range 3 {
		list := make([]Candidate, 50)
		for i := range list {
			list[i] = Candidate{Cosine: 0.9 - 0.001*float32(i), DenseRank: i + 1}
		}
		for i := range matches { // equal scores: no spread at all
			list[40+i].BM25, list[40+i].LexicalRank = 2, i+1
		}
		for _, m := range []Method{Convex, ReciprocalRank} {
			scores, err := Fuse(m, list, 0.5)
			if err != nil {
				t.Fatal(err)
			}
			rest := slices.DeleteFunc(order(scores), func(i int) bool { return i >= 40 && i < 40+matches })
			if !slices.IsSorted(rest) {
				t.Errorf("%s, %d matches: the others lost their order: %v", m, matches, rest)
			}
		}
	}
}

func TestScoresAreFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := make([]Candidate, rapid.IntRange(0, 20).Draw(t, "n"))
		for i := range list {
			list[i] = Candidate{
				Cosine: rapid.Float32Range(-1, 1).Draw(t, "cosine"), BM25: rapid.Float32Range(0, 60).Draw(t, "bm25"),
				DenseRank: rapid.IntRange(0, 20).Draw(t, "dense"), LexicalRank: rapid.IntRange(0, 20).Draw(t, "lexical"),
			}
		}
		w := rapid.Float32Range(0, 1).Draw(t, "weight")
		for _, m := range []Method{Convex, ReciprocalRank} {
			scores, err := Fuse(m, list, w)
			if err != nil || len(scores) != len(list) {
				t.Fatalf("%d scores for %d candidates (%v)", len(scores), len(list), err)
			}
			for i, s := range scores {
				if math.IsNaN(float64(s.Fused)) || math.IsInf(float64(s.Fused), 0) {
					t.Fatalf("%s: candidate %+v has %+v", m, list[i], s)
				}
			}
		}
	})
}

func TestUnknownMethod(t *testing.T) {
	if _, err := Fuse("sum", nil, 0.5); err == nil {
		t.Error("an unknown method was accepted")
	}
}

func ExampleConvexCombination() {
	scores := ConvexCombination([]Candidate{
		{Cosine: 0.91, DenseRank: 1},
		{Cosine: 0.88, DenseRank: 2, BM25: 8.5, LexicalRank: 1},
		{Cosine: 0.81, DenseRank: 3},
	}, 0.5)
	for _, s := range scores {
		fmt.Printf("%.2f\n", s.Fused)
	}
	// Output:
	// 0.50
	// 0.85
	// 0.00
}
