package answer

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	chunking "ragd/ingest/chunk"
	"ragd/retrieve"
)

// markerPattern matches [1] and [1, 3].
var markerPattern = regexp.MustCompile(`\[\d{1,3}(?:\s*,\s*\d{1,3})*\]`)

func markerText(n int) string { return "[" + strconv.Itoa(n) + "]" }

func cite(h retrieve.Hit, marker int, q Quote) Citation {
	return Citation{
		Marker: marker, ChunkID: h.Chunk.ID, Collection: h.Document.Collection, Document: h.Document.Path, Title: h.Document.Title,
		Heading: headings(h), Page: h.Chunk.Page, Quote: q,
	}
}

// headings is never nil, so that JSON shows a list.
func headings(h retrieve.Hit) []string {
	return append([]string{}, h.Chunk.Heading...)
}

// citations finds the markers the model wrote and ties each to the sentence
// before it. Markers that name no presented chunk are left as plain text.
// offset is where text starts in the whole answer, in characters.
func citations(text string, hits []retrieve.Hit, offset int) []Citation {
	var out []Citation
	for _, m := range markerPattern.FindAllStringIndex(text, -1) {
		from, to := sentenceBefore(text, m[0])
		q := Quote{offset + utf8.RuneCountInString(text[:from]), offset + utf8.RuneCountInString(text[:to])}
		for _, field := range strings.Split(text[m[0]+1:m[1]-1], ",") {
			n, err := strconv.Atoi(strings.TrimSpace(field))
			if err == nil && n >= 1 && n <= len(hits) {
				out = append(out, cite(hits[n-1], n, q))
			}
		}
	}
	return out
}

// sentenceBefore is the byte range of the sentence that ends at the marker at
// byte position end, white space and earlier markers left out.
func sentenceBefore(text string, end int) (from, to int) {
	head := text[:end]
	to = len(strings.TrimRightFunc(head, unicode.IsSpace))
	for {
		trimmed := strings.TrimRightFunc(head[:to], unicode.IsSpace)
		m := markerPattern.FindAllStringIndex(trimmed, -1)
		if len(m) == 0 || m[len(m)-1][1] != len(trimmed) {
			to = len(trimmed)
			break
		}
		to = m[len(m)-1][0]
	}
	// A model does not break lines at a margin: each is a sentence's end.
	from = 1 + strings.LastIndexByte(head[:to], '\n')
	if list := chunking.Sentences(head[from:to]); len(list) > 0 {
		from += list[len(list)-1].Start
	}
	if m := markerPattern.FindStringIndex(text[from:to]); m != nil && strings.TrimSpace(text[from:from+m[0]]) == "" {
		from += m[1]
	}
	from = to - len(strings.TrimLeftFunc(text[from:to], unicode.IsSpace))
	return from, to
}

// cited lists each chunk cited once, in the order of the answer.
func cited(list []Citation, hits []retrieve.Hit) []Source {
	out := []Source{}
	seen := map[int]bool{}
	for _, c := range list {
		if !seen[c.Marker] {
			seen[c.Marker] = true
			out = append(out, source(hits[c.Marker-1], c.Marker))
		}
	}
	return out
}

func source(h retrieve.Hit, marker int) Source {
	return Source{
		Marker: marker, ChunkID: h.Chunk.ID, Collection: h.Document.Collection, Document: h.Document.Path, Title: h.Document.Title,
		Heading: headings(h), Page: h.Chunk.Page, Score: h.Scores.Rerank,
	}
}
