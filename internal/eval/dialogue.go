package eval

import (
	"encoding/json"
	"fmt"
)

// mtragTask is a line of MTRAG's reference.jsonl (Katsis et al., 2025): a
// conversation up to a question, with the passages that its answer rests on.
type mtragTask struct {
	ID           string `json:"task_id"`
	Conversation string `json:"conversation_id"`
	Contexts     []struct {
		ID    string `json:"document_id"`
		Title string `json:"title"`
		Text  string `json:"text"`
	} `json:"contexts"`
	Input []struct {
		Speaker string `json:"speaker"`
		Text    string `json:"text"`
	} `json:"input"`
	Targets []struct {
		Text string `json:"text"`
	} `json:"targets"`
	Answerability []string `json:"answerability"`
}

// readMTRAG makes one corpus of all tasks' passages. Tasks that are answered in
// part or ask back are left out: neither an answer nor a refusal is right there.
func readMTRAG(f folder, name string) (*Set, error) {
	s := &Set{Name: name}
	known := map[string]bool{}
	groups := map[string]int{}
	err := decodeAll(f, func(t mtragTask) error {
		for _, c := range t.Contexts {
			if !known[c.ID] {
				known[c.ID] = true
				s.Documents = append(s.Documents, Document(c))
			}
		}
		q, err := t.query(groups)
		if err == nil && (len(q.Gain) > 0 || q.Unanswerable) {
			s.Queries = append(s.Queries, q)
		}
		return err
	}, "reference.jsonl*")
	return s, err
}

func (t mtragTask) query(groups map[string]int) (Query, error) {
	last := len(t.Input) - 1
	if last < 0 {
		return Query{}, fmt.Errorf("%w: task %s asks nothing", ErrSet, t.ID)
	}
	if _, seen := groups[t.Conversation]; !seen {
		groups[t.Conversation] = len(groups)
	}
	q := Query{ID: t.ID, Text: t.Input[last].Text, Group: groups[t.Conversation], Gain: map[string]float64{}}
	for _, turn := range t.Input[:last] {
		role := "user"
		if turn.Speaker != "user" {
			role = "assistant"
		}
		q.History = append(q.History, Turn{Role: role, Text: turn.Text})
	}
	for _, kind := range t.Answerability {
		switch kind {
		case "ANSWERABLE":
			for _, c := range t.Contexts {
				q.Gain[c.ID] = 1
			}
			for _, a := range t.Targets {
				q.Answers = append(q.Answers, a.Text)
			}
		case "UNANSWERABLE":
			q.Unanswerable = true
		}
	}
	return q, nil
}

// rgbFact is a line of RGB's *_fact.json (Chen et al., 2023).
type rgbFact struct {
	ID       int             `json:"id"`
	Query    string          `json:"query"`
	Answer   json.RawMessage `json:"answer"`
	Positive []string        `json:"positive"`
	Negative []string        `json:"negative"`
}

// readRGB makes one corpus of all passages but those that answer the questions of
// odd number: these must be refused. The passages with planted errors stay out.
func readRGB(f folder, name string) (*Set, error) {
	s := &Set{Name: name}
	ids := map[string]string{}
	add := func(text, id string) string {
		if _, known := ids[text]; !known {
			ids[text] = id
			s.Documents = append(s.Documents, Document{ID: id, Text: text})
		}
		return ids[text]
	}
	err := decodeAll(f, func(fact rgbFact) error {
		q := Query{ID: fmt.Sprint(fact.ID), Text: fact.Query, Group: fact.ID / 2, Gain: map[string]float64{}, Unanswerable: fact.ID%2 == 1}
		for i, text := range fact.Negative {
			add(text, fmt.Sprintf("%d/negative/%d", fact.ID, i))
		}
		if !q.Unanswerable {
			for i, text := range fact.Positive {
				q.Gain[add(text, fmt.Sprintf("%d/positive/%d", fact.ID, i))] = 1
			}
			var err error
			if q.Answers, err = spellings(fact.Answer); err != nil {
				return fmt.Errorf("%w: answer of fact %d: %w", ErrSet, fact.ID, err)
			}
		}
		s.Queries = append(s.Queries, q)
		return nil
	}, "*_fact.json*")
	return s, err
}

// spellings reads an answer: a string, or lists of them, nested.
func spellings(raw json.RawMessage) ([]string, error) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var out []string
	for _, r := range list {
		more, err := spellings(r)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}
