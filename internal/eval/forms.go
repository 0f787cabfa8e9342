package eval

import (
	"fmt"
	"strconv"
	"strings"
)

// judgements are gains by question and document.
type judgements map[string]map[string]float64

func (j judgements) add(query, document string, gain float64) {
	if gain <= 0 {
		return
	}
	if j[query] == nil {
		j[query] = map[string]float64{}
	}
	j[query][document] = gain
}

// line reads "query document grade", as BEIR writes it, or "query 0 document
// grade", as TREC does. A header is passed over.
func (j judgements) line(line string) error {
	f := strings.Split(line, "\t")
	if len(f) < 3 {
		f = strings.Fields(line)
	}
	if len(f) == 4 {
		f = []string{f[0], f[2], f[3]}
	}
	if len(f) != 3 {
		return fmt.Errorf("%w: judgement %q", ErrSet, line)
	}
	grade, err := strconv.ParseFloat(strings.TrimSpace(f[2]), 64)
	if err != nil {
		if len(j) == 0 && f[2] == "score" {
			return nil
		}
		return fmt.Errorf("%w: grade in %q", ErrSet, line)
	}
	j.add(f[0], f[1], grade)
	return nil
}

// entry is a line of BEIR's corpus and queries.
type entry struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// readBEIR reads corpus.jsonl, queries as .jsonl or .tsv, and qrels.
func readBEIR(f folder, name string) (*Set, error) {
	s := &Set{Name: name}
	err := decodeAll(f, func(e entry) error {
		s.Documents = append(s.Documents, Document(e))
		return nil
	}, "corpus.jsonl*")
	if err != nil {
		return nil, err
	}
	j := judgements{}
	if err := f.lines(j.line, "qrels*.tsv*", "qrels*.txt*", "qrels/*.tsv*"); err != nil {
		return nil, err
	}
	add := func(id, text string) {
		s.Queries = append(s.Queries, Query{ID: id, Text: text, Gain: j[id], Group: len(s.Queries)})
	}
	if _, err := f.find("queries*.jsonl*"); err == nil {
		return s, decodeAll(f, func(e entry) error { add(e.ID, e.Text); return nil }, "queries*.jsonl*")
	}
	return s, f.lines(func(line string) error {
		id, text, ok := strings.Cut(line, "\t")
		if !ok {
			return fmt.Errorf("%w: question %q", ErrSet, line)
		}
		add(id, text)
		return nil
	}, "queries*.tsv*")
}

type squad struct {
	Data []struct {
		Title      string
		Paragraphs []struct {
			Context string
			QAs     []struct {
				ID, Question string
				Answers      []struct {
					Text  string
					Start int `json:"answer_start"` // in characters
				}
			}
		}
	}
}

// readSQuAD makes a document of each distinct paragraph; a question's own is the
// relevant one. The set is split by article.
func readSQuAD(f folder, name string) (*Set, error) {
	s := &Set{Name: name}
	err := decodeAll(f, func(v squad) error {
		ids := map[string]string{}
		for i, article := range v.Data {
			for k, p := range article.Paragraphs {
				id, known := ids[p.Context]
				if !known {
					id = fmt.Sprintf("%d/%d", i, k)
					ids[p.Context] = id
					s.Documents = append(s.Documents, Document{ID: id, Title: article.Title, Text: p.Context})
				}
				for _, q := range p.QAs {
					asked := Query{ID: q.ID, Text: q.Question, Gain: map[string]float64{id: 1}, Group: i}
					for _, a := range q.Answers {
						asked.Answers = append(asked.Answers, a.Text)
					}
					s.Queries = append(s.Queries, asked)
				}
			}
		}
		return nil
	}, "*.json*")
	return s, err
}

// pair is a question with the passages that answer it.
type pair struct {
	ID       int
	Query    string
	Positive []string
}

// readParallel reads *_kor.json and *_eng.json, which hold the same questions.
func readParallel(f folder, name string, lang Languages) (*Set, error) {
	if lang == "" {
		lang = "ko-ko"
	}
	files := map[string]string{"ko": "*_kor.json*", "en": "*_eng.json*"}
	asked, stored, _ := strings.Cut(string(lang), "-")
	if files[asked] == "" || files[stored] == "" {
		return nil, fmt.Errorf("%w: languages %q are not ko-ko, en-en, ko-en or en-ko", ErrSet, lang)
	}
	s := &Set{Name: name + " " + string(lang)}
	j := judgements{}
	ids := map[string]string{}
	err := decodeAll(f, func(list []pair) error {
		for _, p := range list {
			for _, text := range p.Positive {
				id, known := ids[text]
				if !known {
					id = strconv.Itoa(len(ids))
					ids[text] = id
					s.Documents = append(s.Documents, Document{ID: id, Text: text})
				}
				j.add(strconv.Itoa(p.ID), id, 1)
			}
		}
		return nil
	}, files[stored])
	if err != nil {
		return nil, err
	}
	return s, decodeAll(f, func(list []pair) error {
		for _, p := range list {
			id := strconv.Itoa(p.ID)
			s.Queries = append(s.Queries, Query{ID: id, Text: p.Query, Gain: j[id], Group: len(s.Queries)})
		}
		return nil
	}, files[asked])
}
