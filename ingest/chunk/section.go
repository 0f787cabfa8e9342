package chunk

import (
	"strings"

	"ragd/ingest"
	"ragd/ingest/internal/markdown"
)

// section is the text between two headings.
type section struct {
	heading []string // outermost first
	blocks  []markdown.Block
}

// sections splits a document at its headings. Text before the first heading
// is a section without a path; plain text is one section of paragraphs.
func sections(d *ingest.Document) []section {
	if !d.Markdown {
		return []section{{blocks: paragraphs(d.Text)}}
	}
	blocks := markdown.Blocks(d.Text)
	if len(blocks) == 0 {
		return []section{{blocks: paragraphs(d.Text)}}
	}
	// What goldmark keeps no node for (link definitions) lies before the first block.
	out := []section{{blocks: []markdown.Block{{End: blocks[0].Start}}}}
	var path headingPath
	for _, b := range blocks {
		if b.Kind != markdown.Heading || len(b.Title) > headingBytes {
			last := &out[len(out)-1]
			last.blocks = append(last.blocks, b)
			continue
		}
		path = path.enter(b.Level, b.Title)
		rest := markdown.Block{Start: markdown.HeadingEnd(d.Text, b), End: b.End}
		out = append(out, section{heading: path.titles(), blocks: []markdown.Block{rest}})
	}
	return out
}

// headingPath is the stack of open headings.
type headingPath []markdown.Block

func (p headingPath) enter(level int, title string) headingPath {
	for len(p) > 0 && p[len(p)-1].Level >= level {
		p = p[:len(p)-1]
	}
	return append(p, markdown.Block{Level: level, Title: title})
}

// headingBytes is the length beyond which a heading is text: nobody means a
// paragraph that an underline happens to follow to stand above each chunk.
const headingBytes = 400

func (p headingPath) titles() []string {
	var out []string
	for _, h := range p {
		if h.Title != "" {
			out = append(out, h.Title)
		}
	}
	return out
}

// paragraphs splits plain text at blank lines.
func paragraphs(text string) []markdown.Block {
	var out []markdown.Block
	start, blank := 0, false
	for at := 0; at < len(text); {
		end := at + lineLen(text[at:])
		empty := strings.TrimSpace(text[at:end]) == ""
		if blank && !empty {
			out = append(out, markdown.Block{Start: start, End: at})
			start = at
		}
		blank = empty
		at = end
	}
	return append(out, markdown.Block{Start: start, End: len(text)})
}

func lineLen(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i + 1
	}
	return len(s)
}

// fitHeading shortens a heading path whose tokens would take more than half of
// a chunk: outer headings go first, then the end of the innermost.
func (c *Chunker) fitHeading(path []string) []string {
	limit := c.config.Target / 2
	for len(path) > 0 && c.overhead(path) > limit {
		if len(path) > 1 {
			path = path[1:]
			continue
		}
		head := c.cutWords(path[0], 0, len(path[0]), max(limit-c.base-2, 1))
		short := strings.TrimSpace(path[0][:head[0].end]) + "…"
		if len(head) == 1 || c.overhead([]string{short}) > limit {
			return nil
		}
		return []string{short}
	}
	return path
}

// overhead is what a passage costs before its first character of text.
func (c *Chunker) overhead(path []string) int {
	empty := ingest.Chunk{Heading: path}
	return c.counter.CountPassage(empty.EmbedText())
}
