package chunk

import (
	"regexp"
	"strings"

	"ragd/ingest/internal/markdown"
)

var fenceOpen = regexp.MustCompile("(`{3,}|~{3,})[ \t]*([^\n]*)")

// fenceMarker is the longest marker that is restored; a longer one would take
// its room from the code, and such a fence is cut like prose.
const fenceMarker = 12

// cutFence cuts a code fence that is longer than a chunk at line ends. Every
// piece is a fence of its own, with the marker and the language of the first line.
func (c *Chunker) cutFence(out []unit, text string, b markdown.Block, room int) []unit {
	first := b.Start + lineLen(text[b.Start:b.End])
	m := fenceOpen.FindStringSubmatch(text[b.Start:first])
	if m == nil || len(m[1]) > fenceMarker {
		return c.cutProse(out, text, b.Start, b.End, room)
	}
	open, closing := m[1]+m[2]+"\n", "\n"+m[1]
	if len(open) > certain*room || c.cost(open) > room/4 {
		open = m[1] + "\n"
	}
	limit := max(room-c.cost(open)-c.cost(closing), room/4)
	pieces := c.packLines(text, b.Start, b.End, limit)
	for i, p := range pieces {
		p.alone, p.reopen, p.reclose = true, open, closing
		if i > 0 {
			p.open = open
		}
		if i+1 < len(pieces) || !closed(text[p.start:p.end], m[1]) {
			p.close = closing
		}
		out = append(out, p)
	}
	return out
}

// closed reports whether the last line of a fence's end closes it.
func closed(tail, marker string) bool {
	tail = strings.TrimRight(tail, " \t\n")
	line := strings.TrimLeft(tail[strings.LastIndexByte(tail, '\n')+1:], " \t>")
	return len(line) >= len(marker) && strings.Trim(line, marker[:1]) == ""
}

// cutTable cuts a table between rows. Later pieces repeat the header row and
// the row of dashes, unless those alone would take half of a chunk.
func (c *Chunker) cutTable(out []unit, text string, b markdown.Block, room int) []unit {
	rows := b.Start + lineLen(text[b.Start:b.End])
	rows += lineLen(text[rows:b.End])
	open := text[b.Start:rows]
	cost := 0
	if len(open) <= certain*room {
		cost = c.cost(open)
	}
	if cost == 0 || cost > room/2 {
		open, cost = "", 0
	}
	for i, p := range c.packLines(text, b.Start, b.End, room-cost) {
		p.alone, p.reopen = true, open
		if i > 0 {
			p.open = open
		}
		out = append(out, p)
	}
	return out
}

// packLines fills pieces with whole lines up to limit tokens; longer lines are
// cut between words.
func (c *Chunker) packLines(text string, start, end, limit int) []unit {
	var out []unit
	for at := start; at < end; {
		stop := at + lineLen(text[at:end])
		for _, u := range c.fit(text, at, stop, limit) {
			last := len(out) - 1
			if last >= 0 && out[last].cost+u.cost <= limit {
				out[last].end, out[last].cost = u.end, out[last].cost+u.cost
				continue
			}
			out = append(out, u)
		}
		at = stop
	}
	return out
}
