package eval

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ragd/ingest"
)

// texts are what the references of each question hold, by question.
func texts(s *SpanSet) map[string]string {
	docs := map[string]string{}
	for _, d := range s.Documents {
		docs[d.ID] = d.Text
	}
	out := map[string]string{}
	for _, q := range s.Questions {
		for _, r := range q.References {
			out[q.Text] += docs[q.Document][r.Start:r.End]
		}
	}
	return out
}

func TestArticles(t *testing.T) {
	dir := folderOf(t, map[string]string{"dev.json": `{"data": [
		{"title": "첫", "paragraphs": [{"context": "가나 다라마 바사. 둘째 문장 9.5입니다. 셋째.", "qas": [
			{"id": "1", "question": "몇?", "answers": [{"text": "9.5", "answer_start": 17}]},
			{"id": "2", "question": "둘?", "answers": [{"text": "바사. 둘째", "answer_start": 7}]}]}]},
		{"title": "B\nb", "paragraphs": [{"context": "One.", "qas": []}, {"context": "Two words. Three more words.", "qas": [
			{"id": "3", "question": "what?", "answers": [{"text": "more", "answer_start": 17}]}]}]}]}`})
	s, err := LongDocuments(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]string{"몇?": "둘째 문장 9.5입니다.", "둘?": "가나 다라마 바사. 둘째 문장 9.5입니다.", "what?": "Three more words."}, texts(s)); d != "" {
		t.Error(d)
	}
	if want := "# B b\n\nOne.\n\nTwo words. Three more words.\n"; s.Documents[1].Text != want {
		t.Errorf("document %q, want %q", s.Documents[1].Text, want)
	}
	if odd := s.Half(Odd); len(odd.Questions) != 1 || odd.Questions[0].ID != "3" || len(odd.Documents) != 2 {
		t.Errorf("odd half %+v", odd)
	}
	wrong := folderOf(t, map[string]string{"dev.json": `{"data": [{"title": "t", "paragraphs": [{"context": "abc", "qas": [
		{"id": "1", "question": "q", "answers": [{"text": "bc", "answer_start": 0}]}]}]}]}`})
	if _, err := LongDocuments(t.Context(), wrong); !errors.Is(err, ErrSet) {
		t.Errorf("an answer that is elsewhere: %v", err)
	}
}

func TestHeadings(t *testing.T) {
	body := strings.Repeat("Words about it. ", 20)
	var md strings.Builder
	md.WriteString("Before all of it.\n")
	for i := range 9 {
		fmt.Fprintf(&md, "\n## How to do %d {/*how-%d*/}\n\n%s%d.\n", i, i, body, i)
	}
	md.WriteString("\n## Too few\n\n" + body + "\n\n## It is too short\n\nshort\n\n## Said in two places\n\n" + body)
	dir := folderOf(t, map[string]string{"a.md": md.String(), "b.md": "## said in two places\n\n" + body})
	s, err := LongDocuments(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	// Nine can be asked for, and each fourth is.
	got := texts(s)
	for question, text := range got {
		got[question] = strings.TrimSpace(text)
	}
	if d := cmp.Diff(map[string]string{"How to do 3": body + "3.", "How to do 7": body + "7."}, got); d != "" {
		t.Error(d)
	}
	text := s.Documents[0].Text
	if strings.Contains(text, "do 3") || strings.Contains(text, "how-7") || strings.Count(text, "\n## \n") != 2 || !strings.Contains(text, "do 4") {
		t.Errorf("document:\n%s", text)
	}
	list, times, err := allSections([]ingest.Document{{Text: text, Markdown: true}})
	if err != nil || len(list[0]) != 10 || times["how to do 4"] != 1 {
		t.Errorf("%d sections are left, %v", len(list[0]), err)
	}
	if _, err := LongDocuments(t.Context(), folderOf(t, map[string]string{"a.md": "# One\n\ntext"})); !errors.Is(err, ErrSet) {
		t.Errorf("no heading to ask for: %v", err)
	}
}
