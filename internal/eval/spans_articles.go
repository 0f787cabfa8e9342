package eval

import (
	"fmt"
	"strings"

	"ragd/ingest"
	"ragd/ingest/chunk"
)

// OpenArticles makes a span set of SQuAD's form: the paragraphs of an article, one
// behind the other below its title, are one document, and a question's reference is
// the sentence that holds its first answer.
func OpenArticles(dir string) (*SpanSet, error) {
	f := folder(dir)
	s := &SpanSet{Name: f.name()}
	err := decodeAll(f, func(v squad) error {
		for i, article := range v.Data {
			doc := Document{ID: fmt.Sprintf("%d.md", i), Title: article.Title}
			var text strings.Builder
			fmt.Fprintf(&text, "# %s\n", oneLine(article.Title))
			for _, p := range article.Paragraphs {
				text.WriteByte('\n')
				start := text.Len()
				text.WriteString(p.Context + "\n")
				sentences := chunk.Sentences(p.Context)
				for _, q := range p.QAs {
					if len(q.Answers) == 0 {
						continue
					}
					ref, ok := around(sentences, p.Context, q.Answers[0].Start, q.Answers[0].Text)
					if !ok {
						return fmt.Errorf("%w: the answer of question %s is not in its paragraph", ErrSet, q.ID)
					}
					ref.Start, ref.End = ref.Start+start, ref.End+start
					s.Questions = append(s.Questions, SpanQuery{ID: q.ID, Text: q.Question, Document: doc.ID, Group: i, References: []ingest.Span{ref}})
				}
			}
			doc.Text = text.String()
			s.Documents = append(s.Documents, doc)
		}
		return nil
	}, "*.json*")
	return s, err
}

// around is the range of sentences that holds an answer, which begins at a character
// of the paragraph; ok is false where it does not stand there.
func around(sentences []ingest.Span, paragraph string, start int, answer string) (out ingest.Span, ok bool) {
	at, n := len(paragraph), 0
	for i := range paragraph {
		if n == start {
			at = i
			break
		}
		n++
	}
	if answer == "" || !strings.HasPrefix(paragraph[at:], answer) {
		return out, false
	}
	end := at + len(answer)
	for _, s := range sentences {
		if s.End > at && s.Start < end {
			if !ok {
				out.Start = s.Start
			}
			out.End, ok = s.End, true
		}
	}
	return out, ok
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
