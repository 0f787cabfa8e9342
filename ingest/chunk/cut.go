package chunk

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ragd/ingest/internal/markdown"
)

// unit is a range of the document that is not cut again: a whole block, or a
// piece of one that was too long.
type unit struct {
	start, end int
	cost       int
	// open and close stand around the text of a piece of a fence or a table;
	// such a piece is a chunk of its own.
	open, close string
	// reopen and reclose are what the pieces of this piece would have.
	reopen, reclose string
	alone           bool
	// prose may be repeated from the middle on; half a fence may not.
	prose bool
}

// certain is a number of bytes a token that no text of real tokens reaches: a
// range longer than that is too long without counting it.
const certain = 64

// appendUnits cuts a block as far as it must be.
func (c *Chunker) appendUnits(out []unit, text string, b markdown.Block, room int) []unit {
	if b.Start == b.End {
		return out
	}
	limit := room
	if b.Kind == markdown.Fence || b.Kind == markdown.Table {
		limit = c.config.Max - c.config.Target + room
	}
	if b.End-b.Start <= certain*limit {
		if cost := c.cost(text[b.Start:b.End]); cost <= limit {
			return append(out, unit{start: b.Start, end: b.End, cost: cost, prose: isProse(b)})
		}
	}
	switch {
	case b.Kind == markdown.Fence:
		return c.cutFence(out, text, b, room)
	case b.Kind == markdown.Table:
		return c.cutTable(out, text, b, room)
	case len(b.Parts) > 1 || len(b.Parts) == 1 && b.Parts[0].Kind != markdown.Paragraph:
		for _, part := range b.Parts {
			out = c.appendUnits(out, text, part, room)
		}
		return out
	}
	from := len(out)
	out = c.cutProse(out, text, b.Start, b.End, room)
	for i := range out[from:] {
		out[from+i].prose = true
	}
	return out
}

// isProse reports a block without fences and tables in it.
func isProse(b markdown.Block) bool {
	return b.Kind != markdown.Fence && b.Kind != markdown.Table && !slices.ContainsFunc(b.Parts, func(p markdown.Block) bool { return !isProse(p) })
}

// cutProse cuts at sentence ends; a sentence that is too long is cut further.
func (c *Chunker) cutProse(out []unit, text string, start, end, room int) []unit {
	for _, t := range sentenceTiles(text[start:end]) {
		out = append(out, c.fit(text, start+t.Start, start+t.End, room)...)
	}
	return out
}

// fit is the range as one unit, or cut between words.
func (c *Chunker) fit(text string, start, end, limit int) []unit {
	if end-start <= certain*limit {
		if cost := c.cost(text[start:end]); cost <= limit {
			return []unit{{start: start, end: end, cost: cost}}
		}
	}
	return c.cutWords(text, start, end, limit)
}

// cutWords cuts a range into units of at most limit tokens, between words where
// there are any, else between characters. Each step counts a bounded window, so
// the time is linear in the range.
func (c *Chunker) cutWords(text string, start, end, limit int) []unit {
	var out []unit
	window := 4 * limit
	for pos := start; pos < end; {
		stop := boundary(text, pos, min(pos+window, end), end)
		n := c.cost(text[pos:stop])
		for n > limit {
			shorter := boundary(text, pos, pos+(stop-pos)*limit/(n+1), end)
			if shorter >= stop {
				break // a single character
			}
			stop = shorter
			n = c.cost(text[pos:stop])
		}
		out = append(out, unit{start: pos, end: stop, cost: n})
		perToken := (stop - pos + n) / max(n, 1)
		window = limit * min(max(perToken, 1), certain/4)
		pos = stop
	}
	return out
}

// boundary is the last good place to cut in (pos, stop]: the end of the range,
// after a space, else between two characters. It is always after pos.
func boundary(text string, pos, stop, end int) int {
	if stop >= end {
		return end
	}
	if i := strings.LastIndexAny(text[pos:max(stop, pos)], " \n\t"); i > 0 {
		return pos + i + 1
	}
	stop = runeStart(text, stop)
	for tries := 0; stop > pos && tries < 32; tries++ {
		r, _ := utf8.DecodeRuneInString(text[stop:])
		if !continues(r) {
			return stop
		}
		stop = runeStart(text, stop-1)
	}
	if stop > pos {
		return stop
	}
	_, n := utf8.DecodeRuneInString(text[pos:])
	return min(pos+n, end)
}

func runeStart(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// continues reports characters that are drawn with the one before them.
func continues(r rune) bool {
	return unicode.Is(unicode.M, r) || r == '\u200d' || r >= 0x1160 && r <= 0x11ff || r >= 0x1f3fb && r <= 0x1f3ff
}
