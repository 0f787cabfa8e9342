package answer

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"ragd/retrieve"
)

// maxQuotes is how many sentences an extracted answer quotes, and quoteGap how
// far below the best one's score the next may lie.
const (
	maxQuotes = 2
	quoteGap  = 0.015
)

// extraction is an answer made of the documents' own sentences.
type extraction struct {
	text      string
	citations []Citation
}

// extract quotes the sentences that support the answer best, word for word, each
// followed by its marker: hits[i] is presented as i+1. Of a table the row that
// shares most with the question is quoted; rows that share nothing are no answer.
// Where that leaves nothing, and without sentence vectors, the first sentence of the
// best hit, which is presented last, serves.
func extract(question string, vector []float32, hits []retrieve.Hit) extraction {
	var out extraction
	var top float32
	for _, s := range supporting(vector, hits) {
		h := hits[s.hit]
		quote := tableRow(sentence(h, s.sentence), question)
		if quote == "" {
			continue
		}
		if len(out.citations) == 0 {
			top = s.score
		} else if len(out.citations) == maxQuotes || top-s.score > quoteGap {
			break
		}
		out.add(quote, h, s.hit+1)
	}
	if last := len(hits) - 1; len(out.citations) == 0 && last >= 0 {
		first := firstSentence(hits[last])
		out.add(cmp.Or(tableRow(first, question), first), hits[last], last+1)
	}
	return out
}

func firstSentence(h retrieve.Hit) string {
	for i := range h.Chunk.Sentences {
		if s := sentence(h, i); quotable(s) {
			return s
		}
	}
	return strings.TrimSpace(h.Chunk.Text)
}

// add appends a quote. Line breaks inside it are those of the source's text
// editor and become spaces; every word stays. Lines that are markup alone, such
// as the end of a code block before the sentence, are left out.
func (e *extraction) add(quote string, h retrieve.Hit, marker int) {
	var words []string
	for line := range strings.Lines(quote) {
		if !markupLine(line) {
			words = append(words, strings.Fields(line)...)
		}
	}
	quote = strings.Join(words, " ")
	if quote == "" || strings.Contains(e.text, quote) {
		return
	}
	if e.text != "" {
		e.text += "\n"
	}
	start := utf8.RuneCountInString(e.text)
	e.text += quote
	end := utf8.RuneCountInString(e.text)
	e.text += " " + markerText(marker)
	e.citations = append(e.citations, cite(h, marker, Quote{start, end}))
}

// markupLine reports a code fence or a thematic break.
func markupLine(line string) bool {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
		return true
	}
	return len(line) >= 3 && (strings.Trim(line, "-") == "" || strings.Trim(line, "*") == "" || strings.Trim(line, "_") == "")
}
