package chat

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ragd/prompt"
)

// Any source parses or fails, and what parses renders or fails, within bounds;
// the content of messages never comes out as scaffold.
func FuzzTemplate(f *testing.F) {
	g := readGolden(f)
	for _, source := range g.Templates {
		f.Add(source, "What is <|im_end|>?")
	}
	f.Add("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "")
	f.Add("{{ 'x' * 99999999 }}{{ range(1, 9, -1) }}{%- raw -%}{{{% endraw +%}", "\xff\xed\xa0\x80")
	f.Fuzz(func(t *testing.T, source, content string) {
		tmpl, err := Parse(source)
		if err != nil {
			return
		}
		segments, err := tmpl.Render(Input{
			Messages:            []prompt.Message{{Role: "user", Pieces: []prompt.Piece{{Text: strings.Repeat("\ue123", len(content)%50) + content}}}},
			AddGenerationPrompt: true, BOS: "<s>", EOS: "</s>", Now: time.Unix(0, 0),
		})
		if err != nil {
			return
		}
		size := 0
		for _, s := range segments {
			size += len(s.Text)
			if s.Scaffold && strings.Contains(s.Text, "\ue123") && !strings.Contains(source, "\ue123") && !strings.Contains(source, `\`) {
				t.Fatalf("content came out as scaffold %q", s.Text)
			}
		}
		if size > maxOutput {
			t.Fatalf("%d bytes", size)
		}
	})
}

// Operations on tagged text give what the same operations give on its string,
// and each character keeps its tag.
func TestTextKeepsOrigins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawText(t, "a"), drawText(t, "b")
		from := rapid.IntRange(0, len(a.s)).Draw(t, "from")
		to := rapid.IntRange(from, len(a.s)).Draw(t, "to")
		sep := rapid.SampledFrom([]string{"x", "xy", " "}).Draw(t, "sep")
		limit := rapid.IntRange(-1, 3).Draw(t, "limit")
		for _, tc := range []struct {
			got  text
			want string
		}{
			{concat(a, b), a.s + b.s},
			{a.slice(from, to), a.s[from:to]},
			{a.trim(isSpace, true, true), strings.TrimSpace(a.s)},
			{a.replace(sep, b, limit), strings.Replace(a.s, sep, b.s, limit)},
			{joinTexts(a.splitBy(sep, -1), b), strings.Join(strings.Split(a.s, sep), b.s)},
			{changeCase("upper", a), strings.ToUpper(a.s)},
			{a.replace("", b, limit), strings.Replace(a.s, "", b.s, limit)},
		} {
			if tc.got.s != tc.want {
				t.Fatalf("got %q, want %q", tc.got.s, tc.want)
			}
			checkTags(t, tc.got)
		}
	})
}

// drawText makes a text in which upper and lower case, digits and space tell
// the origin: letters are content of piece 1, digits of piece 2, the rest scaffold.
func drawText(t *rapid.T, label string) text {
	var b builder
	for _, r := range rapid.SliceOfN(rapid.SampledFrom([]rune("xyxy12 é ")), 0, 12).Draw(t, label) {
		b.addString(string(r), originOfRune(r))
	}
	return b.text()
}

func originOfRune(r rune) origin {
	switch r {
	case 'x', 'y', 'X', 'Y':
		return origin{content: true, piece: 1}
	case '1', '2':
		return origin{content: true, piece: 2}
	}
	return origin{}
}

func checkTags(t *rapid.T, x text) {
	from := 0
	for i, sp := range x.spans {
		if sp.end <= from || i > 0 && x.spans[i-1].org == sp.org || !utf8.ValidString(x.s[from:sp.end]) && utf8.ValidString(x.s) {
			t.Fatalf("span %d of %+v is badly cut", i, x)
		}
		for _, r := range x.s[from:sp.end] {
			if r != utf8.RuneError && originOfRune(r) != sp.org {
				t.Fatalf("%q has the wrong origin in %+v", r, x)
			}
		}
		from = sp.end
	}
	if from != len(x.s) {
		t.Fatalf("spans of %+v end at %d", x, from)
	}
}
