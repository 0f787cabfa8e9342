package eval

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/ingest/source"
)

const (
	// Sections of so many bytes are asked for: they say something, and fit a budget.
	leastSection, mostSection = 200, 2000
	// leastWords is the length of a heading that names its section alone.
	leastWords = 3
	// askedSections: of the sections that could be asked for, each so many-th is.
	askedSections = 4
)

// OpenHeadings makes a span set of a folder of documents that nobody judged: a
// heading is the question, and the text below it the reference. The words of such a
// heading are taken out of the document, or it would find itself; its marks stay, so
// that the section begins where it did. Most headings are not asked for and stay.
func OpenHeadings(ctx context.Context, dir string) (*SpanSet, error) {
	docs, err := documents(ctx, dir)
	if err != nil {
		return nil, err
	}
	all, times, err := allSections(docs)
	if err != nil {
		return nil, err
	}
	s := &SpanSet{Name: folder(dir).name()}
	able := 0
	for i, d := range docs {
		var asked []headed
		for _, h := range all[i] {
			if !h.asks() || times[strings.ToLower(h.title)] > 1 {
				continue
			}
			if able++; able%askedSections == 0 {
				asked = append(asked, h)
			}
		}
		s.ask(d, i, asked)
	}
	if len(s.Questions) == 0 {
		return nil, fmt.Errorf("%w: %s has too few headings that name a section", ErrSet, dir)
	}
	return s, nil
}

// documents reads a folder as the document road does; what cannot be read is left out.
func documents(ctx context.Context, dir string) (docs []ingest.Document, err error) {
	src, err := source.New(source.DefaultConfig())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	list, err := src.Find(ctx, []string{dir})
	if err != nil {
		return nil, err
	}
	for _, f := range list.Files {
		raw, err := src.Load(ctx, f)
		if err != nil {
			continue
		}
		if d, err := src.Extract(ctx, raw); err == nil && d.Markdown {
			docs = append(docs, d)
		}
	}
	return docs, ctx.Err()
}

// headed is a section below an ATX heading.
type headed struct {
	title string
	words ingest.Span // of the heading's line behind the marks
	body  ingest.Span
}

// asks says whether the heading names its section, which fits a budget.
func (h headed) asks() bool {
	n := h.body.End - h.body.Start
	return n >= leastSection && n <= mostSection && len(strings.Fields(h.title)) >= leastWords
}

// allSections lists the sections of each document, and how often each title stands
// in all of them.
func allSections(docs []ingest.Document) (all [][]headed, times map[string]int, err error) {
	whole, err := chunk.New(noModel{}, chunk.Config{Target: 4096, Max: 4096}) // a chunk is a section
	if err != nil {
		return nil, nil, err
	}
	times = map[string]int{}
	for i := range docs {
		chunks, err := whole.Chunk(&docs[i])
		if err != nil {
			return nil, nil, err
		}
		var list []headed
		from := 0
		for _, c := range chunks {
			if h, ok := above(docs[i].Text, from, c); ok {
				list = append(list, h)
				times[strings.ToLower(h.title)]++
			}
			from = c.End
		}
		all = append(all, list)
	}
	return all, times, nil
}

// atxHeading is a heading's line: its marks, then its words.
var atxHeading = regexp.MustCompile(`(?m)^ {0,3}#{1,6}[ \t]+(\S.*)$`)

// above finds the heading over a chunk, in the text behind the chunk before.
func above(text string, from int, c ingest.Chunk) (h headed, ok bool) {
	lines := atxHeading.FindAllStringSubmatchIndex(text[from:c.Start], -1)
	if len(lines) == 0 || len(c.Heading) == 0 {
		return h, false
	}
	last := lines[len(lines)-1]
	return headed{
		title: c.Heading[len(c.Heading)-1],
		words: ingest.Span{Start: from + last[2], End: from + last[3]},
		body:  ingest.Span{Start: c.Start, End: c.End},
	}, true
}

// ask adds a document without the words of the headings that are asked for.
func (s *SpanSet) ask(d ingest.Document, group int, asked []headed) {
	var text strings.Builder
	from, gone := 0, 0
	for _, h := range asked {
		text.WriteString(d.Text[from:h.words.Start])
		from, gone = h.words.End, gone+h.words.End-h.words.Start
		s.Questions = append(s.Questions, SpanQuery{
			ID: fmt.Sprintf("%s#%d", d.Path, h.words.Start), Text: h.title, Document: d.Path, Group: group,
			References: []ingest.Span{{Start: h.body.Start - gone, End: h.body.End - gone}},
		})
	}
	text.WriteString(d.Text[from:])
	s.Documents = append(s.Documents, Document{ID: d.Path, Title: d.Title, Text: text.String()})
}
