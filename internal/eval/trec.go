package eval

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readCranfield reads the collection of that name. Judgements name a question by
// its place in the file. Grade 1 is the best of four and worth 4; documents of
// grade -1, which nobody explains, are left out of the ranking.
func readCranfield(f folder, name string) (*Set, error) {
	s := &Set{Name: name}
	err := cranfield(f, func(id string, field map[string]string) {
		s.Documents = append(s.Documents, Document{ID: id, Title: field[".T"], Text: field[".W"]})
	}, "cran.all*")
	if err != nil {
		return nil, err
	}
	err = cranfield(f, func(id string, field map[string]string) {
		s.Queries = append(s.Queries, Query{
			ID: id, Text: field[".W"], Group: len(s.Queries), Gain: map[string]float64{}, Ignored: map[string]bool{},
		})
	}, "cran.qry*")
	if err != nil {
		return nil, err
	}
	return s, f.lines(func(line string) error {
		var place, document, grade int
		if _, err := fmt.Sscan(line, &place, &document, &grade); err != nil || place < 1 || place > len(s.Queries) {
			return fmt.Errorf("%w: judgement %q", ErrSet, line)
		}
		q, id := &s.Queries[place-1], strconv.Itoa(document)
		if grade < 0 {
			q.Ignored[id] = true
		} else {
			q.Gain[id] = float64(5 - grade)
		}
		return nil
	}, "cranqrel")
}

// cranfield calls fn with each record: ".I id" starts one, other marks (.T, .W)
// its fields.
func cranfield(f folder, fn func(id string, fields map[string]string), patterns ...string) error {
	var id, mark string
	var fields map[string]string
	emit := func() {
		if id != "" {
			for k, v := range fields {
				fields[k] = strings.TrimSpace(v)
			}
			fn(id, fields)
		}
	}
	err := f.lines(func(line string) error {
		switch {
		case strings.HasPrefix(line, ".I "):
			emit()
			id, mark, fields = strings.TrimSpace(line[3:]), "", map[string]string{}
		case len(line) == 2 && line[0] == '.':
			mark = line
		case fields != nil:
			fields[mark] += line + "\n"
		}
		return nil
	}, patterns...)
	if err == nil {
		emit()
	}
	return err
}

// readTREC reads documents and topics in TREC's markup.
func readTREC(f folder, name string) (*Set, error) {
	s := &Set{Name: name}
	err := f.read(func(r io.Reader) error {
		return records(r, "DOC", func(body string) {
			s.Documents = append(s.Documents, Document{ID: tagged(body, "DOCNO"), Text: after(body, "</DOCNO>")})
		})
	}, "doc-text.trec*")
	if err != nil {
		return nil, err
	}
	j := judgements{}
	if err := f.lines(j.line, "qrels*"); err != nil {
		return nil, err
	}
	return s, f.read(func(r io.Reader) error {
		return records(r, "top", func(body string) {
			id := tagged(body, "num")
			// The topics are in capitals throughout, which says nothing.
			text := strings.ToLower(tagged(body, "title"))
			s.Queries = append(s.Queries, Query{ID: id, Text: text, Gain: j[id], Group: len(s.Queries)})
		})
	}, "query-text.trec*")
}

// records calls fn with the inside of each element of the name.
func records(r io.Reader, name string, fn func(body string)) error {
	all, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	for rest := string(all); ; {
		body := tagged(rest, name)
		if body == "" {
			return nil
		}
		fn(body)
		rest = after(rest, "</"+name+">")
	}
}

// tagged is the trimmed inside of the first element of the name.
func tagged(s, name string) string {
	_, s, _ = strings.Cut(s, "<"+name+">")
	s, _, _ = strings.Cut(s, "</"+name+">")
	return strings.TrimSpace(s)
}

func after(s, mark string) string {
	_, s, _ = strings.Cut(s, mark)
	return strings.TrimSpace(s)
}
