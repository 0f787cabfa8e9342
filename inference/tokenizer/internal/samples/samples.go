// Package samples makes the strings on which tokenizers are compared with
// their references: the same ones on every machine and with every Go version.
package samples

import (
	"math/rand/v2"
	"strings"
)

// Count is the number of strings that Strings makes.
const Count = 2400

// Strings are texts of many scripts and shapes: sentences and parts of them,
// words of several languages mixed, random letters, code, white space,
// numbers, emoji and the spellings of control tokens.
func Strings() []string {
	g := generator{rand.New(rand.NewPCG(20, 26))}
	makers := []func() string{g.sentence, g.part, g.mixture, g.letters, g.code, g.noise, g.digits, g.pictures, g.control, g.paragraph}
	out := make([]string, 0, Count)
	for i := range Count {
		out = append(out, makers[i%len(makers)]())
	}
	return out
}

type generator struct{ *rand.Rand }

func pick[T any](g generator, list []T) T { return list[g.IntN(len(list))] }

func (g generator) sentence() string { return pick(g, sentences) }

// part is a sentence cut at two characters.
func (g generator) part() string {
	r := []rune(g.sentence())
	i := g.IntN(len(r))
	return string(r[i : i+1+g.IntN(len(r)-i)])
}

// mixture is words of different languages with odd separators.
func (g generator) mixture() string {
	var b strings.Builder
	for range 2 + g.IntN(10) {
		word := pick(g, strings.Fields(g.sentence()))
		switch g.IntN(6) {
		case 0:
			word = strings.ToUpper(word)
		case 1:
			word = strings.ToTitle(word)
		}
		b.WriteString(word)
		b.WriteString(pick(g, separators))
	}
	return b.String()
}

// letters is characters of one range in random order.
func (g generator) letters() string {
	r := pick(g, ranges)
	var b strings.Builder
	for range 1 + g.IntN(24) {
		b.WriteRune(r.from + g.Int32N(r.to-r.from+1))
		if g.IntN(6) == 0 {
			b.WriteString(pick(g, separators))
		}
	}
	return b.String()
}

func (g generator) code() string {
	var b strings.Builder
	for range 1 + g.IntN(4) {
		b.WriteString(strings.Repeat(pick(g, []string{" ", "\t", "    "}), g.IntN(4)))
		b.WriteString(pick(g, snippets))
		b.WriteString(pick(g, []string{"\n", "\r\n", "\n\n", "; ", ""}))
	}
	return b.String()
}

// noise is mostly white space and punctuation.
func (g generator) noise() string {
	var b strings.Builder
	for range 1 + g.IntN(16) {
		switch g.IntN(3) {
		case 0:
			b.WriteString(strings.Repeat(pick(g, separators), 1+g.IntN(5)))
		case 1:
			b.WriteString(strings.Repeat(pick(g, marks), 1+g.IntN(4)))
		default:
			b.WriteString(pick(g, []string{"a", "Z", "9", "é", "한", "字", "'s", "'RE", "'ll", "n't"}))
		}
	}
	return b.String()
}

func (g generator) digits() string {
	var b strings.Builder
	for range 1 + g.IntN(5) {
		for range 1 + g.IntN(12) {
			b.WriteByte(byte('0' + g.IntN(10)))
		}
		b.WriteString(pick(g, []string{" ", ".", ",", "-", "/", " 원 ", "%", "x", "٣", "Ⅷ", "½", "\n"}))
	}
	return b.String()
}

func (g generator) pictures() string {
	var b strings.Builder
	for range 1 + g.IntN(8) {
		b.WriteString(pick(g, emoji))
		b.WriteString(pick(g, []string{"", " ", "ok", "!", "네"}))
	}
	return b.String()
}

// control is text with the spellings of control tokens in it.
func (g generator) control() string {
	return g.part() + pick(g, spellings) + g.part() + pick(g, []string{"", " ", "\n"}) + pick(g, spellings)
}

// paragraph is several sentences as a document has them.
func (g generator) paragraph() string {
	var b strings.Builder
	for range 2 + g.IntN(5) {
		b.WriteString(g.sentence())
		b.WriteString(pick(g, []string{" ", "\n", "\n\n", "  ", "\r\n", "\n- ", "\n## "}))
	}
	return b.String()
}
