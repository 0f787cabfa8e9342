package eval

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ragd/ingest"
)

// SpanSet is a set of long documents and questions whose answers are parts of
// them: the chunking evaluation of Smith and Troynikov (Chroma, 2024).
type SpanSet struct {
	Name      string
	Documents []Document
	Questions []SpanQuery
}

// SpanQuery is answered by parts of one document.
type SpanQuery struct {
	ID, Text string
	Document string
	// References are byte ranges in the document's text, in order, disjoint.
	References []ingest.Span
	// Group is what the set is split by: questions of one group share a document.
	Group int
}

// HoldsSpans says whether a folder looks like a span set.
func HoldsSpans(dir string) bool {
	_, err := folder(dir).find("questions_df.csv*")
	return err == nil
}

// LongDocuments reads a span set, or makes one of what the folder holds: of SQuAD's
// form (one *.json), or of documents with headings.
func LongDocuments(ctx context.Context, dir string) (*SpanSet, error) {
	if HoldsSpans(dir) {
		return OpenSpans(dir)
	}
	if _, err := folder(dir).find("*.json*"); err == nil {
		return OpenArticles(dir)
	}
	return OpenHeadings(ctx, dir)
}

// Half is the set with the questions of a half alone; its documents stay.
func (s *SpanSet) Half(h Half) *SpanSet {
	out := &SpanSet{Name: s.Name, Documents: s.Documents}
	for _, q := range s.Questions {
		if h == All || h == "" || (q.Group%2 == 0) == (h == Even) {
			out.Questions = append(out.Questions, q)
		}
	}
	return out
}

// OpenSpans reads questions_df.csv and corpora/NAME.md, which may be packed with
// gzip. ErrSet means that the folder holds no such set.
func OpenSpans(dir string) (*SpanSet, error) {
	f := folder(dir)
	s := &SpanSet{Name: f.name()}
	texts := map[string]string{}
	err := f.read(func(r io.Reader) error {
		rows, err := csv.NewReader(r).ReadAll()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrSet, err)
		}
		if len(rows) == 0 || !slices.Equal(rows[0], []string{"question", "references", "corpus_id"}) {
			return fmt.Errorf("%w: the columns are not question, references, corpus_id", ErrSet)
		}
		for i, row := range rows[1:] {
			if _, known := texts[row[2]]; !known {
				if texts[row[2]], err = f.corpus(row[2]); err != nil {
					return err
				}
				s.Documents = append(s.Documents, Document{ID: row[2], Title: row[2], Text: texts[row[2]]})
			}
			refs, err := references(row[1], texts[row[2]])
			if err != nil {
				return fmt.Errorf("%w: question %d: %w", ErrSet, i+1, err)
			}
			s.Questions = append(s.Questions, SpanQuery{ID: fmt.Sprint(i + 1), Text: row[0], Document: row[2], References: refs, Group: i})
		}
		return nil
	}, "questions_df.csv*")
	if err == nil && len(s.Questions) == 0 {
		err = fmt.Errorf("%w: %s asks nothing", ErrSet, dir)
	}
	return s, err
}

// Shortest is the set of the n shortest documents alone; 0 keeps all.
func (s *SpanSet) Shortest(n int) *SpanSet {
	if n <= 0 || n >= len(s.Documents) {
		return s
	}
	docs := slices.Clone(s.Documents)
	slices.SortStableFunc(docs, func(a, b Document) int { return len(a.Text) - len(b.Text) })
	out := &SpanSet{Name: s.Name, Documents: docs[:n]}
	for _, q := range s.Questions {
		if slices.ContainsFunc(out.Documents, func(d Document) bool { return d.ID == q.Document }) {
			out.Questions = append(out.Questions, q)
		}
	}
	return out
}

// corpus reads a document of a span set; its name must not lead out of the folder.
func (f folder) corpus(name string) (text string, err error) {
	if strings.ContainsAny(name, `/\*?[`) {
		return "", fmt.Errorf("%w: corpus %q", ErrSet, name)
	}
	err = f.read(func(r io.Reader) error {
		b, err := io.ReadAll(r)
		text = string(b)
		return err
	}, "corpora/"+name+".md*")
	return text, err
}

// references turns offsets in characters into byte ranges, and joins those that touch.
func references(raw, text string) ([]ingest.Span, error) {
	var list []struct {
		Start int `json:"start_index"`
		End   int `json:"end_index"`
	}
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return nil, err
	}
	at := make([]int, 0, len(text)+1) // bytes of each character
	for i := range text {
		at = append(at, i)
	}
	at = append(at, len(text))
	var out []ingest.Span
	for _, r := range list {
		if r.Start < 0 || r.Start >= r.End || r.End >= len(at) {
			return nil, fmt.Errorf("reference %d to %d of %d characters", r.Start, r.End, len(at)-1)
		}
		out = append(out, ingest.Span{Start: at[r.Start], End: at[r.End]})
	}
	if len(out) == 0 {
		return nil, errors.New("no reference")
	}
	return union(out), nil
}
