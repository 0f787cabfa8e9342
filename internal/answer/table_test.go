package answer

import (
	"testing"

	"golang.org/x/text/unicode/norm"

	"ragd/retrieve"
)

func TestTableRow(t *testing.T) {
	const table = "| 품목 | 위치 |\n| --- | :---: |\n| 베어링, 6204 | 동관 3열 |\n| 벨트, B-52 | 서관 1열 |"
	for _, c := range []struct{ text, question, want string }{
		{table, "베어링 6204는 어디에 보관하나?", "| 베어링, 6204 | 동관 3열 |"},
		{table, "벨트가 있는 곳은?", "| 벨트, B-52 | 서관 1열 |"},
		{norm.NFD.String(table), "베어링 6204는 어디에 보관하나?", norm.NFD.String("| 베어링, 6204 | 동관 3열 |")},
		{table, norm.NFD.String("벨트가 있는 곳은?"), "| 벨트, B-52 | 서관 1열 |"},
		{"| AB-7 | 상자 |\n| AB-9 | 선반 |", "AB-9는 어디에 있나?", "| AB-9 | 선반 |"},
		{"| A1 | 상자 |\n| B2 | 선반 |", "B2의 자리는?", "| B2 | 선반 |"},
		{"| 3번 | 상자 |\n| 4번 | 선반 |", "4번은 어디?", "| 4번 | 선반 |"},
		{"| ＡＢ－７ | 상자 |\n| AB-9 | 선반 |", "AB-7은?", "| ＡＢ－７ | 상자 |"},
		{"| valve | 4 |\n| hose | 11 |", "How many hoses are there?", "| hose | 11 |"},
		{"| 1 | failed |\n| 130 | interrupted |", "Who won the cup of 1998?", ""},
		{"Plain | text.", "text?", "Plain | text."},
		{"| head | only |\n| --- | --- |", "head?", "| head | only |\n| --- | --- |"},
		{"Before the table.\n| a | b |", "a?", "Before the table.\n| a | b |"},
	} {
		if got := tableRow(c.text, c.question); got != c.want {
			t.Errorf("%q of %q: %q, want %q", c.question, c.text, got, c.want)
		}
	}
}

// Rows that share nothing with the question give way to prose further from it.
func TestForeignRowsAreNotQuoted(t *testing.T) {
	h := chunk(1, "codes", "| 1 | failed badly |\n| 130 | interrupted |", "The run stored all good documents.")
	h.SentenceVectors = [][]float32{{1, 0}, {0.5, 0}}
	if got := extract("Who won the cup of 1998?", []float32{1, 0}, []retrieve.Hit{h}).text; got != "The run stored all good documents. [1]" {
		t.Errorf("quoted %q", got)
	}
	if got := extract("What is 130?", []float32{1, 0}, []retrieve.Hit{h}).text; got != "| 130 | interrupted | [1]" {
		t.Errorf("quoted %q", got)
	}
}
