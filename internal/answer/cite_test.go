package answer

import (
	"testing"
	"unicode/utf8"

	"ragd/retrieve"
)

func TestCitations(t *testing.T) {
	hits := []retrieve.Hit{chunk(10, "A", "a."), chunk(20, "B", "b."), chunk(30, "C", "c.")}
	type want struct {
		marker int
		quote  string
	}
	for name, c := range map[string]struct {
		text string
		want []want
	}{
		"none":             {"No marker here.", nil},
		"one":              {"The crane lifts 14 t [1].", []want{{1, "The crane lifts 14 t"}}},
		"after the stop":   {"The crane lifts 14 t. [2]", []want{{2, "The crane lifts 14 t."}}},
		"second sentence":  {"It is old. It was built in 1988 [3].", []want{{3, "It was built in 1988"}}},
		"two at once":      {"Both say so [1, 3].", []want{{1, "Both say so"}, {3, "Both say so"}}},
		"side by side":     {"Both say so [1][2].", []want{{1, "Both say so"}, {2, "Both say so"}}},
		"no such chunk":    {"Made up [7] and [0].", nil},
		"Korean":           {"기중기는 오래됐다.\n14톤을 든다 [2].", []want{{2, "14톤을 든다"}}},
		"marker alone":     {"[1]", []want{{1, ""}}},
		"after a question": {"왜 그런가? 14톤을 든다 [2].", []want{{2, "14톤을 든다"}}},
		"after a call":     {"It is strong! It lifts 14 t [2].", []want{{2, "It lifts 14 t"}}},
		"a date":           {"오래됐다. 시행일은 2024. 3. 15. 이다 [1].", []want{{1, "시행일은 2024. 3. 15. 이다"}}},
		"abbreviation":     {"Use a cache, e.g. Redis [1].", []want{{1, "Use a cache, e.g. Redis"}}},
		"East Asian stop":  {"古い。十四トンを持ち上げる [2]。", []want{{2, "十四トンを持ち上げる"}}},
		"a line of a list": {"This line of an answer is not wrapped at a margin\nThe next one lifts 14 t [1]", []want{{1, "The next one lifts 14 t"}}},
		"marker leads":     {"[1] The crane lifts. [1]", []want{{1, ""}, {1, "The crane lifts."}}},
		"array in code":    {"x = a[1] + b", []want{{1, "x = a"}}},
		"number too large": {"[99999]", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := citations(c.text, hits, 0)
			if len(got) != len(c.want) {
				t.Fatalf("%+v", got)
			}
			for i, w := range c.want {
				quote := string([]rune(c.text)[got[i].Quote.Start:got[i].Quote.End])
				if got[i].Marker != w.marker || quote != w.quote {
					t.Errorf("marker %d quotes %q, want %d %q", got[i].Marker, quote, w.marker, w.quote)
				}
			}
		})
	}
}

func FuzzCitations(f *testing.F) {
	f.Add("The crane lifts [1]. [2][3] 가나다 [1, 2].")
	f.Add(". [1]\n[1]..")
	hits := []retrieve.Hit{chunk(10, "A", "a."), chunk(20, "B", "b.")}
	f.Fuzz(func(t *testing.T, text string) {
		n := utf8.RuneCountInString(text)
		for _, c := range citations(text, hits, 0) {
			if c.Quote.Start < 0 || c.Quote.Start > c.Quote.End || c.Quote.End > n {
				t.Fatalf("%q: quote %+v of %d characters", text, c.Quote, n)
			}
		}
	})
}
