package tokenizer_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ragd/inference/tokenizer"
)

// stream pushes pieces and returns all text and whether a stop was met.
func stream(tb testing.TB, stops []string, pieces ...string) (text string, stopped bool) {
	tb.Helper()
	d, err := tokenizer.NewDetokenizer(stops)
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range pieces {
		var part string
		part, stopped = d.Push([]byte(p))
		if !utf8.ValidString(part) {
			tb.Errorf("piece %q gave invalid UTF-8 %q", p, part)
		}
		text += part
	}
	return text + d.Flush(), stopped
}

func TestDetokenizerStops(t *testing.T) {
	tests := []struct {
		name    string
		pieces  []string
		stops   []string
		want    string
		stopped bool
	}{
		{"across pieces", []string{"left", " ri", "ght", " up d", "own"}, []string{"right up"}, "left ", true},
		{"only its beginning", []string{"ri", "ght ", "down"}, []string{"right up"}, "right down", false},
		{"begins again inside itself", []string{"x", "x", "x", "y"}, []string{"xxy"}, "x", true},
		{"overlaps itself", []string{"na", "na", "no"}, []string{"nano"}, "na", true},
		{"inside one piece", []string{"before|after"}, []string{"|"}, "before", true},
		{"at once", []string{"STOP"}, []string{"STOP"}, "", true},
		{"the first to end wins", []string{"abc", "d"}, []string{"abcd", "bc"}, "a", true},
		{"the longest of those that end together", []string{"a", "b", "c", "d"}, []string{"cd", "bcd"}, "a", true},
		{"the same, named in the other order", []string{"a", "b", "c", "d"}, []string{"bcd", "cd"}, "a", true},
		{"one begins another", []string{"aa"}, []string{"a", "aa"}, "", true},
		{"in the middle of characters", []string{"가\xeb", "\x82\x98", "\xeb\x8b", "\xa4라"}, []string{"나다"}, "가", true},
		{"same first bytes, other character", []string{"\xeb\x82", "\x99"}, []string{"나"}, "낙", false},
		{"newlines", []string{"a\n", "\nb"}, []string{"\n\n"}, "a", true},
		{"held text comes at the end", []string{"see <", "|im"}, []string{"<|im_end|>"}, "see <|im", false},
		{"no stops", []string{"a", "", "b"}, nil, "ab", false},
		{"nothing after a stop", []string{"a;", "b", "c"}, []string{";"}, "a", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, stopped := stream(t, tt.stops, tt.pieces...)
			if got != tt.want || stopped != tt.stopped {
				t.Errorf("got %q, stopped %v; want %q, %v", got, stopped, tt.want, tt.stopped)
			}
		})
	}
}

func TestDetokenizerBytes(t *testing.T) {
	tests := []struct {
		name   string
		pieces []string
		want   string
	}{
		{"Hangul byte by byte", []string{"\xec", "\x83", "\x88"}, "새"},
		{"emoji byte by byte", []string{"go ", "\xf0", "\x9f", "\xaa", "\x81", "?"}, "go 🪁?"},
		{"end and beginning in one piece", []string{"\xea\xb0\x80\xeb", "\x82\x98"}, "가나"},
		{"cut inside a character", []string{"B", "\xf0\x9f\xa6"}, "B"},
		{"cut after one byte", []string{"\xed"}, ""},
		{"never a byte of UTF-8", []string{"\xff", "C"}, "\uFFFDC"},
		{"two of them", []string{"\xfe\xff"}, "\uFFFD\uFFFD"},
		{"unfinished, then another", []string{"\xe2\x82", "D"}, "\uFFFDD"},
		{"continuation alone", []string{"\x80", "E"}, "\uFFFDE"},
		{"surrogate", []string{"\xed\xa0\x80"}, "\uFFFD\uFFFD\uFFFD"},
		{"overlong", []string{"\xc0\xaf"}, "\uFFFD\uFFFD"},
		{"combining mark apart", []string{"o", "\xcc\x88"}, "o\u0308"},
		{"joined emoji", []string{"\xf0\x9f\x91\xa8", "\xe2\x80", "\x8d", "\xf0\x9f\x9a\x80"}, "👨\u200d🚀"},
		{"U+FFFD as text", []string{"\xef\xbf", "\xbd"}, "\uFFFD"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := stream(t, nil, tt.pieces...); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDetokenizerRefusesStops(t *testing.T) {
	for _, stops := range [][]string{{""}, {"ok", ""}, {"\xff"}, {"\xed\x95"}} {
		if _, err := tokenizer.NewDetokenizer(stops); !errors.Is(err, tokenizer.ErrStop) {
			t.Errorf("stops %q: error %v", stops, err)
		}
	}
}

// Text comes as soon as no stop can begin with it, and no earlier.
func TestDetokenizerHoldsNoMoreThanNeeded(t *testing.T) {
	d, err := tokenizer.NewDetokenizer([]string{"\n\nUser:", "END"})
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct{ piece, want string }{
		{"Yes", "Yes"}, {"\n", ""}, {"a", "\na"}, {" E", " "}, {"N", ""}, {"E", "EN"}, {"\n\nUs", "E"}, {"e ", "\n\nUse "},
	}
	for _, s := range steps {
		if got, _ := d.Push([]byte(s.piece)); got != s.want {
			t.Errorf("after %q: got %q, want %q", s.piece, got, s.want)
		}
	}
}

// cutAtStop is the rule of stops on a whole text, by trying every end.
func cutAtStop(text string, stops []string) (string, bool) {
	for end := 1; end <= len(text); end++ {
		longest := 0
		for _, s := range stops {
			if strings.HasSuffix(text[:end], s) {
				longest = max(longest, len(s))
			}
		}
		if longest > 0 {
			return text[:end-longest], true
		}
	}
	return text, false
}

func drawPieces(t *rapid.T, text string) []string {
	var pieces []string
	for text != "" {
		n := rapid.IntRange(1, min(len(text), 6)).Draw(t, "n")
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

func TestDetokenizerStreamEqualsWhole(t *testing.T) {
	few := rapid.StringOfN(rapid.RuneFrom([]rune("ab나😀")), 1, 4, -1)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abc나다😀\n")), 0, 40, -1).Draw(rt, "text")
		stops := rapid.SliceOfN(few, 0, 3).Draw(rt, "stops")
		want, wantStopped := cutAtStop(text, stops)
		got, stopped := stream(t, stops, drawPieces(rt, text)...)
		if got != want || stopped != wantStopped {
			rt.Fatalf("got %q %v, want %q %v", got, stopped, want, wantStopped)
		}
	})
}

func FuzzDetokenizer(f *testing.F) {
	f.Add([]byte("plain text"), "x", uint8(3))
	f.Add([]byte("\xf0\x9f\xa6\xa6\xff\xe2\x82"), "🦦", uint8(1))
	f.Add([]byte("aaab"), "aab", uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, stop string, size uint8) {
		stops := []string{stop}
		if stop == "" || !utf8.ValidString(stop) {
			stops = nil
		}
		var pieces []string
		for rest := string(data); rest != ""; {
			n := min(len(rest), int(size)%7+1)
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		whole, stoppedWhole := stream(t, stops, string(data))
		got, stopped := stream(t, stops, pieces...)
		if got != whole || stopped != stoppedWhole {
			t.Fatalf("in pieces %q %v, whole %q %v", got, stopped, whole, stoppedWhole)
		}
		if utf8.Valid(data) && stops == nil && got != string(data) {
			t.Fatalf("got %q, want %q", got, data)
		}
	})
}
