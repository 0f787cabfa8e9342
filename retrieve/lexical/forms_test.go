package lexical_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"

	"ragd/retrieve"
)

// In whatever Unicode form a document was written and a question is asked, the
// same documents are found.
func TestFormsFindTheSame(t *testing.T) {
	c := newCorpus(t)
	forms := map[string]func(string) string{
		"NFC": norm.NFC.String, "NFD": norm.NFD.String, "NFKC": norm.NFKC.String, "NFKD": norm.NFKD.String,
		"full width": width.Widen.String, "half width": width.Narrow.String,
		"marks out of order": strings.NewReplacer("\u1ec7", "e\u0302\u0323").Replace,
	}
	texts := map[string]string{
		"Korean":      "밸브를 잠그는 절차는 각서에 있다",
		"combining":   "naïve café in Việt Nam",
		"identifiers": "reset code ERR-4402 in max_len",
		"kana":        "ガイドの手順",
		"emoji":       "launch 🚀 and 👩‍🚀",
	}
	for subject, text := range texts {
		for name, form := range forms {
			c.put("a/"+subject+"/"+name, form(text))
		}
	}
	c.put("a/nothing", "unrelated words alone")
	for subject, text := range texts {
		for name, form := range forms {
			m := c.search(retrieve.Query{Text: form(text)})
			if m.Len() != len(forms) {
				t.Errorf("%s asked as %s: %d of %d forms are found", subject, name, m.Len(), len(forms))
			}
			scores := map[float32]bool{}
			for _, e := range m.Top(len(forms)) {
				scores[e.Score] = true
			}
			if len(scores) != 1 {
				t.Errorf("%s asked as %s: the forms score differently: %v", subject, name, maps.Keys(scores))
			}
		}
	}
}

// patience is far more than any of these searches takes, even on a busy machine.
const patience = 30 * time.Second

// Hostile questions end in time, find what they name and change nothing.
func TestHostileQuestionsEnd(t *testing.T) {
	c := newCorpus(t)
	c.put("a/1", "the pump & the valve | one accumulator")
	var different strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&different, "w%d ", i)
	}
	for name, q := range map[string]struct {
		text string
		want int
	}{
		"10,000 words of a kind":   {strings.Repeat("pump ", 10_000), 1},
		"10,000 words":             {different.String() + "accumulator", 1}, // of too many, the long ones are looked up
		"10,000 stop words":        {strings.Repeat("the of and which ", 2_500), 0},
		"10,000 signs":             {strings.Repeat("?!-", 3_400), 0},
		"one word of 64 KiB":       {strings.Repeat("x", 64<<10), 0},
		"one identifier of 64 KiB": {strings.Repeat("x-", 32<<10) + "x", 0},
		"10,000 combining marks":   {"pump" + strings.Repeat("\u0301", 10_000), 0},
		"10,000 joiners":           {"pump" + strings.Repeat("\u200d", 10_000), 1},
		"10,000 Hangul syllables":  {strings.Repeat("가나", 5_000), 0},
		"jamo without an end":      {strings.Repeat("\u1100", 10_000), 0},
		"SQL":                      {"pump'; DELETE FROM ragd.documents; --", 1},
		"SQL in dollars":           {"$$ pump $1 %s \\", 1},
		"tsquery":                  {"!pump & (valve <-> one:*B) |", 1},
		"an unfinished tsquery":    {"((('pump", 1},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		m, err := c.words.Search(ctx, retrieve.Query{Text: q.text, Collections: []string{"default"}})
		cancel()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if m.Len() != q.want {
			t.Errorf("%s: %d matches, want %d", name, m.Len(), q.want)
		}
	}
	if n := c.count("documents"); n != 1 {
		t.Errorf("%d documents are left", n)
	}
}
