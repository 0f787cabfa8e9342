package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		want string // what follows the match
	}{
		{"nothing to look at", "", ""},
		{"one token is too little", "xa", ""},
		{"nothing alike", "abcdef", ""},
		{"one token alike is too little", "abcb", ""},
		{"two tokens", "abcdab", "cdab"},
		{"the latest of equals", "abcabdab", "dab"},
		{"a longer one before a later one", "xabc-abd-xab", "c-abd-xab"},
		{"a period of one", "aaa", "a"},
		{"a period of two", "abab", "ab"},
		{"the whole of it but the end", "abcabc", "abc"},
	} {
		tokens := make([]int32, len(c.text))
		for i := range tokens {
			tokens[i] = int32(c.text[i])
		}
		got := ""
		if at := match(tokens); at > 0 {
			got = c.text[at:]
		}
		if got != c.want {
			t.Errorf("%s: %q goes on with %q, want %q", c.name, c.text, got, c.want)
		}
	}
}

// match is the plain definition.
func TestMatchProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.SliceOfN(rapid.Int32Range(0, 3), 0, 60).Draw(t, "tokens")
		alike := func(end int) int {
			n := 0
			for n < end && n < longestMatch && tokens[end-1-n] == tokens[len(tokens)-1-n] {
				n++
			}
			return n
		}
		want, longest := 0, shortestMatch-1
		for end := len(tokens) - 1; end > 0; end-- {
			if n := alike(end); n > longest {
				want, longest = end, n
			}
		}
		if got := match(tokens); got != want {
			t.Fatalf("%v: %d, want %d", tokens, got, want)
		}
	})
}

func TestDraftsRunIntoThemselves(t *testing.T) {
	l := newLookup()
	l.size = 7
	got := l.extend(append(make([]int32, 0, 20), 1, 2, 3, 1, 2, 3), 6)
	if want := []int32{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Drafts grow while they are right, and rest ever longer while they are wrong.
func TestLookupAdapts(t *testing.T) {
	l := newLookup()
	period := []int32{1, 2, 1, 2}
	drafts := func() int { return len(l.extend(slices.Clone(period), 100)) - len(period) }
	for _, want := range []int{4, 8, 16, 16} {
		n := drafts()
		if n != want {
			t.Fatalf("%d drafted, want %d", n, want)
		}
		l.learn(n, n)
	}
	l.learn(16, 5)
	if n := drafts(); n != 5 {
		t.Errorf("%d drafted after 5 were accepted, want 5", n)
	}
	for _, want := range []int{2, 4, 8, 16, 32, 64, 64} {
		l.learn(drafts(), 0)
		for step := range want {
			if n := drafts(); n != 0 {
				t.Fatalf("%d drafted in step %d of a rest of %d", n, step, want)
			}
		}
		if n := drafts(); n != leastDraft {
			t.Fatalf("%d drafted after a rest of %d, want %d", n, want, leastDraft)
		}
	}
	l.learn(2, 1)
	if n := drafts(); n != leastDraft {
		t.Errorf("%d drafted after one was accepted, want %d without a rest", n, leastDraft)
	}
}
