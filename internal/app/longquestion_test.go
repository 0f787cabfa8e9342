package app

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ragd/inference/cpu"
	"ragd/internal/answer"
	"ragd/rerank"
)

// A question of the longest length is read at both ends alone, and told of.
func TestLongestQuestion(t *testing.T) {
	e := lateEncoder(t, cpu.Config{})
	if n := e.Unread("Which lamp is violet?"); n != 0 {
		t.Errorf("%d tokens of a short question are not read", n)
	}
	filler := func(word string) string {
		return strings.Repeat(word+" stands on the shelf by the door. ", answer.MaxQuestionBytes/3/(len(word)+34))
	}
	question := func(begin, middle, end string) string { return filler(begin) + filler(middle) + filler(end) }
	text := question("lamp", "clock", "chair")
	if len(text) > answer.MaxQuestionBytes || len(text) < answer.MaxQuestionBytes-300 {
		t.Fatalf("%d bytes", len(text))
	}
	start := time.Now()
	v, read, err := e.EmbedQuery(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	unread := e.Unread(text)
	t.Logf("%d tokens read in %v, %d not", read, time.Since(start), unread)
	if read > questionParts*e.MaxTokens() || unread < read {
		t.Errorf("%d tokens read, %d not", read, unread)
	}
	// Each part that is read has a prefix and special tokens of its own.
	if all := e.CountPassage(text); read+unread < all || read+unread > all+2*questionParts*e.CountPassage("") {
		t.Errorf("%d tokens read and %d not are not the %d there are", read, unread, all)
	}
	for name, c := range map[string]struct {
		text string
		same bool
	}{
		"beginning": {question("door", "clock", "chair"), false},
		"middle":    {question("lamp", "river", "chair"), true},
		"end":       {question("lamp", "clock", "river"), false},
	} {
		w, _, err := e.EmbedQuery(t.Context(), c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Equal(v, w); got != c.same {
			t.Errorf("another %s: same vector %v, cosine %.4f", name, got, rerank.Cosine(v, w))
		}
	}
}
