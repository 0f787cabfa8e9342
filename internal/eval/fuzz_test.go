package eval

import (
	"math"
	"testing"
	"unicode/utf8"
)

// References are ranges of the text, in order and apart, on borders of characters.
func FuzzReferences(f *testing.F) {
	f.Add(`[{"start_index":0,"end_index":2},{"start_index":1,"end_index":3}]`, "a밸é")
	f.Add(`[{"start_index":-1,"end_index":9223372036854775807}]`, "")
	f.Add(`{}`, "x")
	f.Fuzz(func(t *testing.T, raw, text string) {
		list, err := references(raw, text)
		if err == nil && len(list) == 0 {
			t.Error("no reference and no error")
		}
		last := -1
		for _, s := range list {
			if s.Start <= last || s.End <= s.Start || s.End > len(text) {
				t.Errorf("range %d…%d behind %d of %d bytes", s.Start, s.End, last, len(text))
			} else if utf8.ValidString(text) && !utf8.ValidString(text[s.Start:s.End]) {
				t.Errorf("range %d…%d cuts a character", s.Start, s.End)
			}
			last = s.End
		}
	})
}

func FuzzSpellings(f *testing.F) {
	for _, s := range []string{`"a"`, `["a",["b",[]]]`, `[1]`, `null`, `[[[`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := spellings(raw)
		if err != nil && list != nil {
			t.Errorf("%q with %v", list, err)
		}
	})
}

// The measures lie between 0 and 1, an exact match has F1 1 and holds the gold
// answer, and a text matches itself.
func FuzzMatch(f *testing.F) {
	for _, s := range [][3]string{{"who?", "The «the» a", "the"}, {"누구?", "〈나관중〉", "나관중"}, {"", "\xff", "…"}, {"", "an", "a"}} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, question, answer, gold string) {
		m := match(question, answer, []string{gold})
		if m.F1 < 0 || m.F1 > 1+1e-9 || math.IsNaN(m.F1) || m.EM == 1 && math.Abs(m.F1-1) > 1e-9 || m.Contains == 1 && m.F1 == 0 && korean(question) {
			t.Errorf("%+v", m)
		}
		if self := match(question, answer, []string{answer}); self.EM != 1 {
			t.Errorf("%q does not match itself: %+v", answer, self)
		}
	})
}
