// Package eval measures retrieval on judged sets: documents, questions, and which
// documents answer which question.
package eval

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrSet: a folder holds no set, or one whose parts do not fit each other.
var ErrSet = errors.New("not a readable set")

// Document is a passage to be found.
type Document struct {
	ID    string
	Title string
	Text  string
}

// Query is a judged question.
type Query struct {
	ID   string
	Text string
	// Gain says how much each relevant document is worth; it is positive.
	Gain map[string]float64
	// Ignored documents are taken out of a ranking before it is scored.
	Ignored map[string]bool
	// Group is what the set is split by: questions of one group share documents.
	Group int
	// Answers are the gold answers, any of which is right; nil where the set has none.
	Answers []string
	// Unanswerable: the documents hold no answer, and to refuse is right.
	Unanswerable bool
	// History is what was said before, oldest first.
	History []Turn
}

// Turn is an earlier turn of a conversation.
type Turn struct{ Role, Text string }

// Set is a judged corpus.
type Set struct {
	Name      string
	Documents []Document
	Queries   []Query
}

// Half names the part of a set that is asked.
type Half string

// Settings are tuned on the even groups and reported on the odd ones.
const (
	All  Half = "all"
	Even Half = "even"
	Odd  Half = "odd"
)

// Selection narrows a set.
type Selection struct {
	// Documents bounds the corpus, relevant documents first; 0 for all.
	Documents int
	// Every keeps each n-th question; 0 or 1 for all.
	Every int
	Half  Half
}

// Select returns the part of a set that sel names. Questions that lose their last
// relevant document are left out.
func (s *Set) Select(sel Selection) (*Set, error) {
	out := &Set{Name: s.Name, Documents: s.Documents}
	if sel.Documents > 0 && sel.Documents < len(s.Documents) {
		out.Documents = s.relevantFirst()[:sel.Documents]
	}
	kept := map[string]bool{}
	for _, d := range out.Documents {
		kept[d.ID] = true
	}
	every := max(sel.Every, 1)
	for i, q := range s.Queries {
		switch {
		case i%every != 0, sel.Half == Even && q.Group%2 != 0, sel.Half == Odd && q.Group%2 == 0:
			continue
		}
		q.Gain = only(q.Gain, kept)
		if len(q.Gain) > 0 || q.Unanswerable {
			out.Queries = append(out.Queries, q)
		}
	}
	if len(out.Queries) == 0 {
		return nil, fmt.Errorf("%w: %s: no question is left of %d", ErrSet, s.Name, len(s.Queries))
	}
	return out, nil
}

// With is the set with the questions of a foreign one, which its documents do not
// answer; foreign may be nil.
func (s *Set) With(foreign *Set) *Set {
	if foreign == nil {
		return s
	}
	out := &Set{Name: s.Name + " against " + foreign.Name, Documents: s.Documents, Queries: slices.Clone(s.Queries)}
	for _, q := range foreign.Queries {
		out.Queries = append(out.Queries, Query{ID: foreign.Name + "/" + q.ID, Text: q.Text, Group: q.Group, Unanswerable: true})
	}
	return out
}

func (s *Set) relevantFirst() []Document {
	relevant := map[string]int{}
	for _, q := range s.Queries {
		for id := range q.Gain {
			relevant[id] = -1
		}
	}
	docs := slices.Clone(s.Documents)
	slices.SortStableFunc(docs, func(a, b Document) int { return cmp.Compare(relevant[a.ID], relevant[b.ID]) })
	return docs
}

func only(gain map[string]float64, kept map[string]bool) map[string]float64 {
	out := make(map[string]float64, len(gain))
	for id, g := range gain {
		if kept[id] {
			out[id] = g
		}
	}
	return out
}

// judged is the set with the questions alone that some document answers.
func (s *Set) judged() (*Set, error) {
	out := &Set{Name: s.Name, Documents: s.Documents}
	for _, q := range s.Queries {
		if len(q.Gain) > 0 {
			out.Queries = append(out.Queries, q)
		}
	}
	return out.check()
}

// check refuses a set without documents or judged questions, and drops questions
// that nobody judged.
func (s *Set) check() (*Set, error) {
	s.Queries = slices.DeleteFunc(s.Queries, func(q Query) bool { return len(q.Gain) == 0 && !q.Unanswerable })
	if len(s.Documents) == 0 || len(s.Queries) == 0 {
		return nil, fmt.Errorf("%w: %s has %d documents and %d judged questions", ErrSet, s.Name, len(s.Documents), len(s.Queries))
	}
	return s, nil
}
