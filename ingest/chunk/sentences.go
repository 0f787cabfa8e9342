package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ragd/ingest"
	"ragd/ingest/internal/markdown"
)

// minSentence is the number of tokens below which a sentence is joined to the
// next one: a vector of three words says little.
const minSentence = 8

// Sentences returns the sentences of a text as byte ranges without the space
// around them, in order and not overlapping. Everything but space lies in one.
//
// A sentence ends at . ! ? (and closing quotes or brackets) before space, at
// 。！？ anywhere, and at a line break, unless the line is a long one that goes
// on in the next (text wrapped at a margin). A point does not end a sentence
// inside a number, a date, an address or an abbreviation, or before a small letter.
func Sentences(text string) []ingest.Span {
	var out []ingest.Span
	lead := -1 // where signs without text wait for the first sentence
	for _, t := range sentenceTiles(text) {
		body := text[t.Start:t.End]
		inner := strings.TrimSpace(body)
		if inner == "" {
			continue
		}
		start := t.Start + strings.Index(body, inner)
		s := ingest.Span{Start: start, End: start + len(inner)}
		switch signs := !ingest.HasText(inner); {
		case signs && len(out) > 0: // a rule, a closing fence
			out[len(out)-1].End = s.End
			continue
		case signs:
			if lead < 0 {
				lead = s.Start
			}
			continue
		case lead >= 0:
			s.Start, lead = lead, -1
		}
		out = append(out, s)
	}
	return out
}

// sentences are those of a chunk, short ones joined to the next; a short last
// one joins the one before.
func (c *Chunker) sentences(text string) []ingest.Span {
	var out []ingest.Span
	open := false
	for _, s := range Sentences(text) {
		if open {
			out[len(out)-1].End = s.End
		} else {
			out = append(out, s)
		}
		last := out[len(out)-1]
		open = last.End-last.Start <= certain*minSentence && c.cost(text[last.Start:last.End]) < minSentence
	}
	if open && len(out) > 1 {
		out[len(out)-2].End = out[len(out)-1].End
		out = out[:len(out)-1]
	}
	return out
}

// sentenceTiles cuts a text after each sentence; the space after it belongs to it.
func sentenceTiles(text string) []ingest.Span {
	var out []ingest.Span
	start := 0
	line := lineState{}
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		end := i + n
		ends := false
		switch r {
		case '。', '！', '？', '｡':
			end = skipClosers(text, end)
			ends = true
		case '．':
			end = skipClosers(text, end)
			next, _ := utf8.DecodeRuneInString(text[end:])
			ends = !unicode.IsDigit(next)
		case '.', '!', '?', '…':
			end = skipClosers(text, end)
			ends = (end == len(text) || spaceLen(text[end:]) > 0) && (r != '.' || endsSentence(text, start, i, end))
		case '\n':
			ends = !line.wraps(text[end:])
			line = lineState{}
		default:
			line.width += width(r)
		}
		if ends {
			end = skipSpace(text, end, &line)
			out = append(out, ingest.Span{Start: start, End: end})
			start = end
		}
		i = end
	}
	if start < len(text) {
		out = append(out, ingest.Span{Start: start, End: len(text)})
	}
	return out
}

// lineState measures the line so far, in columns.
type lineState struct{ width int }

// wrapColumns is the width from which a line break may be a margin's.
const wrapColumns = 45

// wraps reports whether a line break after this line is only a margin: the line
// is long and what follows is neither blank nor the start of another block.
func (l lineState) wraps(rest string) bool {
	if l.width < wrapColumns || rest == "" {
		return false
	}
	rest = strings.TrimLeft(rest[:min(len(rest), 32)], " ")
	return rest != "" && !strings.ContainsRune("\n\t-*+#|>`~:<", rune(rest[0])) && !markdown.IsItem(rest)
}

func width(r rune) int {
	if r >= 0x1100 {
		return 2
	}
	return 1
}

// spaceLen is the length of the space at the start of s, 0 when there is none: web
// pages have no-break spaces after points, East Asian text wide ones.
func spaceLen(s string) int {
	if r, n := utf8.DecodeRuneInString(s); unicode.IsSpace(r) {
		return n
	}
	return 0
}

// skipClosers passes further end marks, closing quotes and brackets.
func skipClosers(text string, i int) int {
	for i < len(text) {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !strings.ContainsRune(".!?…。！？｡．\"'”’)]}»」』》〉*_`", r) {
			break
		}
		i += n
	}
	return i
}

func skipSpace(text string, i int, line *lineState) int {
	for n := spaceLen(text[i:]); n > 0; n = spaceLen(text[i:]) {
		if text[i] == '\n' {
			*line = lineState{}
		}
		i += n
	}
	return i
}
