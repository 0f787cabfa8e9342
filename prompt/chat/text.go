package chat

import (
	"strings"
	"unicode/utf8"

	"ragd/prompt"
)

// origin says who wrote a character. Two pieces of the same part have
// different piece numbers, so that they stay apart in the rendered prompt and
// their tokens can be counted apart.
type origin struct {
	content bool
	part    prompt.Part
	piece   int
}

// span is a stretch of a text with one origin; it ends before byte end.
type span struct {
	end int
	org origin
}

// text is an immutable string whose characters know their origin.
type text struct {
	s     string
	spans []span
}

// scaffold is text that the template wrote.
func scaffold(s string) text { return tagged(s, origin{}) }

func tagged(s string, org origin) text {
	if s == "" {
		return text{}
	}
	return text{s: s, spans: []span{{end: len(s), org: org}}}
}

// concat joins texts; neighbours of one origin become one span.
func concat(parts ...text) text {
	var b builder
	for _, p := range parts {
		b.add(p)
	}
	return b.text()
}

// slice is the text of bytes from to to.
func (t text) slice(from, to int) text {
	if from >= to {
		return text{}
	}
	out := text{s: t.s[from:to]}
	for _, sp := range t.spans {
		if sp.end <= from {
			continue
		}
		if sp.end >= to {
			out.spans = append(out.spans, span{to - from, sp.org})
			break
		}
		out.spans = append(out.spans, span{sp.end - from, sp.org})
	}
	return out
}

// mapSpans applies f to the string of each span.
func (t text) mapSpans(f func(string) string) text {
	var b builder
	from := 0
	for _, sp := range t.spans {
		b.addString(f(t.s[from:sp.end]), sp.org)
		from = sp.end
	}
	return b.text()
}

// originOf is the origin of the first content in t, else scaffold.
func (t text) originOf() origin {
	for _, sp := range t.spans {
		if sp.org.content {
			return sp.org
		}
	}
	return origin{}
}

// trim removes characters that cut accepts from the chosen ends.
func (t text) trim(cut func(rune) bool, left, right bool) text {
	from, to := 0, len(t.s)
	if left {
		from = len(t.s) - len(strings.TrimLeftFunc(t.s, cut))
	}
	if right {
		to = len(strings.TrimRightFunc(t.s, cut))
	}
	return t.slice(from, to)
}

// offsets is the byte offset of every character and of the end.
func (t text) offsets() []int {
	offs := make([]int, 0, len(t.s)+1)
	for i := range t.s {
		offs = append(offs, i)
	}
	return append(offs, len(t.s))
}

// length counts characters, as Python does.
func (t text) length() int { return utf8.RuneCountInString(t.s) }

// splitBy cuts t at each occurrence of sep, at most limit times if limit >= 0.
func (t text) splitBy(sep string, limit int) []text {
	var parts []text
	from := 0
	for limit != 0 {
		i := strings.Index(t.s[from:], sep)
		if i < 0 {
			break
		}
		parts = append(parts, t.slice(from, from+i))
		from += i + len(sep)
		limit--
	}
	return append(parts, t.slice(from, len(t.s)))
}

// replace puts with in the place of old, at most limit times if limit >= 0.
// An empty old stands before every character and at the end.
func (t text) replace(old string, with text, limit int) text {
	if old != "" {
		return joinTexts(t.splitBy(old, limit), with)
	}
	var b builder
	offs := t.offsets()
	for i, at := range offs {
		if limit != 0 {
			b.add(with)
			limit--
		}
		if i+1 < len(offs) {
			b.add(t.slice(at, offs[i+1]))
		}
	}
	return b.text()
}

func joinTexts(parts []text, sep text) text {
	var b builder
	for i, p := range parts {
		if i > 0 {
			b.add(sep)
		}
		b.add(p)
	}
	return b.text()
}

// builder grows a text.
type builder struct {
	buf   strings.Builder
	spans []span
}

func (b *builder) addString(s string, org origin) {
	if s == "" {
		return
	}
	b.buf.WriteString(s)
	if n := len(b.spans); n > 0 && b.spans[n-1].org == org {
		b.spans[n-1].end = b.buf.Len()
		return
	}
	b.spans = append(b.spans, span{b.buf.Len(), org})
}

func (b *builder) add(t text) {
	from := 0
	for _, sp := range t.spans {
		b.addString(t.s[from:sp.end], sp.org)
		from = sp.end
	}
}

func (b *builder) len() int { return b.buf.Len() }

func (b *builder) text() text { return text{b.buf.String(), b.spans} }

// isSpace is Python's str.isspace for one character.
func isSpace(r rune) bool {
	switch {
	case r >= 0x09 && r <= 0x0d, r >= 0x1c && r <= 0x20, r == 0x85, r == 0xa0, r == 0x1680,
		r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}
