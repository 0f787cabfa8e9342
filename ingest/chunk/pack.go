package chunk

import (
	"fmt"
	"slices"
	"strings"

	"ragd/ingest"
)

// packer fills the chunks of one section.
type packer struct {
	*Chunker
	text    string
	heading []string
	room    int // tokens for text in a chunk of the target size
	units   []unit
	out     []ingest.Chunk
	tail    int // where the prose at the end of the last chunk starts
}

func (c *Chunker) newPacker(text string, heading []string) *packer {
	heading = c.fitHeading(heading)
	return &packer{Chunker: c, text: text, heading: heading, room: c.config.Target - c.overhead(heading)}
}

// pack takes units from the front, as many as fit. The sum of the costs is an
// estimate; what counts is the exact length of the finished passage, so a chunk
// that came out too long gives up its overlap, then units, then is halved.
func (p *packer) pack() ([]ingest.Chunk, error) {
	stack := slices.Clone(p.units)
	slices.Reverse(stack)
	for len(stack) > 0 {
		from, overlap := p.overlap(stack[len(stack)-1])
		n := p.take(stack, overlap)
		chunk, ok := p.build(stack, n, from)
		if !ok && overlap > 0 {
			from = stack[len(stack)-1].start
			chunk, ok = p.build(stack, n, from)
		}
		for !ok && n > 1 {
			n -= max(n/8, 1)
			chunk, ok = p.build(stack, n, from)
		}
		if !ok {
			halves, err := p.halve(stack[len(stack)-1])
			if err != nil {
				return nil, err
			}
			stack = append(stack[:len(stack)-1], halves...)
			continue
		}
		if chunk.Text != "" {
			p.out = append(p.out, chunk)
			p.tail = proseTail(stack[len(stack)-n:])
		}
		stack = stack[:len(stack)-n]
	}
	return p.out, nil
}

// take is how many units from the top of the stack fit beside the overlap by
// their costs: at least one.
func (p *packer) take(stack []unit, overlap int) int {
	n, sum := 0, overlap
	for i := len(stack) - 1; i >= 0; i-- {
		u := stack[i]
		if n > 0 && (u.alone || sum+u.cost > p.room) {
			break
		}
		sum += u.cost
		n++
		if u.alone {
			break
		}
	}
	return n
}

// build makes the chunk of the top n units, starting at from (before the first
// unit when there is overlap). Its Text is empty when the units hold no text;
// ok is false when it is longer than the embedder takes.
func (p *packer) build(stack []unit, n, from int) (chunk ingest.Chunk, ok bool) {
	first, last := stack[len(stack)-1], stack[len(stack)-n]
	if !ingest.HasText(p.text[first.start:last.end]) {
		return ingest.Chunk{}, true
	}
	start, end := trim(p.text, from, last.end)
	chunk = ingest.Chunk{Heading: p.heading, Start: start, End: end, Text: first.open + p.text[start:end] + last.close}
	chunk.Tokens = p.counter.CountPassage(chunk.EmbedText())
	return chunk, chunk.Tokens <= p.config.Max
}

// trim leaves out blank lines before and blank space after; the indentation of
// the first line stays.
func trim(text string, start, end int) (int, int) {
	body := strings.TrimRight(text[start:end], " \t\n\f\v")
	lead := len(body) - len(strings.TrimLeft(body, " \t\n\f\v"))
	lead = strings.LastIndexByte(body[:lead], '\n') + 1
	return start + lead, start + len(body)
}

// proseTail is where the last run of prose among the taken units starts (the
// first of them is on top): the end of them all when the last is none.
func proseTail(taken []unit) int {
	start := taken[0].end
	for _, u := range taken {
		if !u.prose {
			break
		}
		start = u.start
	}
	return start
}

// overlap is where the next chunk starts when it repeats whole sentences of
// prose from the end of the one before, and what they cost. Pieces that stand
// alone neither give nor take any.
func (p *packer) overlap(next unit) (from, cost int) {
	if p.config.Overlap == 0 || len(p.out) == 0 || next.alone {
		return next.start, 0
	}
	prev := p.out[len(p.out)-1]
	if prev.Text != p.text[prev.Start:prev.End] || next.start < prev.End {
		return next.start, 0
	}
	low := runeStart(p.text, max(prev.Start+1, next.start-8*p.config.Overlap))
	whole := p.tail >= low // the first tile is a whole sentence
	low = max(low, p.tail)
	if low >= next.start {
		return next.start, 0
	}
	tiles := sentenceTiles(p.text[low:next.start])
	from = next.start
	for i := len(tiles) - 1; i > 0 || i == 0 && whole; i-- {
		t := tiles[i]
		more := p.Chunker.cost(p.text[low+t.Start : low+t.End])
		if cost+more > p.config.Overlap || cost+more+next.cost > p.room {
			break
		}
		from, cost = low+t.Start, cost+more
	}
	return from, cost
}

// halve cuts a unit in two for the stack, the second half below the first.
func (p *packer) halve(u unit) ([]unit, error) {
	mid := boundary(p.text, u.start, u.start+(u.end-u.start)/2, u.end)
	if mid >= u.end {
		return nil, fmt.Errorf("a single character needs more than %d tokens", p.config.Max)
	}
	first, second := u, u
	first.end, second.start = mid, mid
	first.close, second.open = u.reclose, u.reopen
	first.cost = p.Chunker.cost(p.text[first.start:first.end])
	second.cost = p.Chunker.cost(p.text[second.start:second.end])
	return []unit{second, first}, nil
}
