package telemetry

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// The ring is a list of the last records, however many came and however they
// are asked for.
func TestRecentIsTheTailOfAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 9).Draw(t, "size")
		r, all := newRecent(size), []uint64{}
		for range rapid.IntRange(0, 40).Draw(t, "records") {
			r.add(Record{})
			all = append(all, uint64(len(all)+1))
		}
		since := rapid.Uint64Range(0, 50).Draw(t, "since")
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		var want []uint64
		for _, n := range all[max(0, len(all)-size):] {
			if n > since && len(want) < limit {
				want = append(want, n)
			}
		}
		got := r.since(since, limit)
		if len(got) != len(want) {
			t.Fatalf("%d records, want %v", len(got), want)
		}
		for i := range got {
			if got[i].Seq != want[i] {
				t.Fatalf("record %d is %d, want %d", i, got[i].Seq, want[i])
			}
		}
	})
}

func TestClipCutsAtACharacter(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("가", 300), strings.Repeat("a", 399) + "가", strings.Repeat("😀", 101)} {
		got := clip(s, 400)
		if !utf8.ValidString(got) || len(got) > 400+len("…") || !strings.HasPrefix(s, strings.TrimSuffix(got, "…")) {
			t.Errorf("clip of %d bytes gave %q", len(s), got)
		}
	}
}
