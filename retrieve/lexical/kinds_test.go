package lexical_test

import (
	"testing"

	"golang.org/x/text/unicode/norm"

	"ragd/retrieve"
)

// first returns the path of the best match of each question.
func (c *corpus) first(question string) string {
	c.Helper()
	top := c.search(retrieve.Query{Text: question}).Top(1)
	if len(top) == 0 {
		return "nothing"
	}
	var path string
	err := c.pool.QueryRow(c.Context(), `
		SELECT d.path FROM ragd.chunks c JOIN ragd.documents d ON d.id = c.document_id WHERE c.id = $1`, top[0].Chunk).Scan(&path)
	if err != nil {
		c.Fatal(err)
	}
	return path
}

// A filter means the text that people see: names from macOS spell each syllable by its
// letters, in which "각" begins with "가".
func TestFiltersInEveryForm(t *testing.T) {
	c := newCorpus(t)
	nfd := norm.NFD.String
	c.put(nfd("자료/가다.md"), "pump")
	c.put("자료/가나.md", "pump")
	c.put(nfd("자료/각.md"), "pump")
	c.put("자료/"+nfd("표.md"), "pump")
	c.put(nfd("자료/")+"그림.md", "pump")
	c.put("other/a.md", "pump")
	for _, f := range []struct {
		prefix string
		want   int
	}{
		{"자료/가", 2}, {nfd("자료/가"), 2}, {"자료/", 5}, {"자료/표", 1}, {nfd("자료/표"), 1}, {"자료/그림", 1}, {nfd("자료/각"), 1}, {"other/", 1}, {"자료%", 0},
	} {
		for _, limit := range []int{0, 10} {
			q := retrieve.Query{Text: "pump", Limit: limit, Filters: retrieve.Filters{PathPrefix: f.prefix}}
			if n := c.search(q).Len(); n != f.want {
				t.Errorf("%+q, limit %d: %d chunks, want %d", f.prefix, limit, n, f.want)
			}
		}
	}
	q := retrieve.Query{Text: "pump", Filters: retrieve.Filters{Metadata: map[string][]string{"kind": {nfd("ñ")}}}}
	e := document("x", "h", "pump")
	e.Document.Metadata["kind"] = "ñ"
	if _, err := c.store.Put(t.Context(), "default", "m", "r", e); err != nil {
		t.Fatal(err)
	}
	if n := c.search(q).Len(); n != 1 {
		t.Errorf("metadata: %d chunks", n)
	}
}

// Codes that differ by the order of their digits, and names in every style of
// writing, are found by what they say, with or without a particle behind them.
func TestIdentifiersByWords(t *testing.T) {
	c := newCorpus(t)
	for path, text := range map[string]string{
		"fault-7031": "FLT-7031: the belt slipped. Tighten bolt C.",
		"fault-7013": "FLT-7013: the belt is worn. Order belt type 9.",
		"fault-7301": "FLT-7301: the lamp went out.",
		"options":    "`idle_stop_secs` ends the run. `idle-stop-grace` adds a pause. `IdleStopVoice` speaks.",
		"changes":    "Build 4.12.7 mended the lamp. Build 4.1.27 was withdrawn. Build 41.2.7 is for another machine.",
		"spares":     "Spare 9C-11D4-2 takes the place of 9C-10D4-2.",
	} {
		c.put(path, text)
	}
	for question, want := range map[string]string{
		"FLT-7031":                 "fault-7031",
		"flt 7013":                 "fault-7013",
		"What does FLT-7301 mean?": "fault-7301",
		"화면에 FLT-7031이 나와요":        "fault-7031",
		"FLT-7013를 고치려면":           "fault-7013",
		"idle_stop_secs":           "options",
		"idle-stop-grace":          "options",
		"IdleStopVoice":            "options",
		"build 4.12.7":             "changes",
		"v4.12.7":                  "changes",
		"9C-11D4-2":                "spares",
	} {
		if got := c.first(question); got != want {
			t.Errorf("%q: %s first, want %s", question, got, want)
		}
	}
}

// A noun is found whatever particle follows it, here or there, and a longer noun
// that begins the same does not take its place.
func TestParticlesByWords(t *testing.T) {
	c := newCorpus(t)
	for path, text := range map[string]string{
		"예약": "예약은 사흘 전까지 받는다. 예약금은 돌려주지 않는다.",
		"취소": "취소하려면 전화를 건다.",
		"주차": "주차장은 건물 뒤에 있다.",
		"열쇠": "열쇠를 잃으면 안내소로 온다.",
		"청소": "청소는 매주 화요일에 한다. 청소기는 복도 끝에 둔다.",
		"짐":  "짐 보관 서비스가 있다.",
	} {
		c.put(path, text)
	}
	for question, want := range map[string]string{
		"예약":         "예약",
		"예약을 바꾸려면?":  "예약",
		"취소가 되나요":    "취소",
		"주차는 어디에":    "주차",
		"열쇠가 없어졌어요":  "열쇠",
		"청소기로 해도 되나": "청소",
		"짐보관":        "짐",
	} {
		if got := c.first(question); got != want {
			t.Errorf("%q: %s first, want %s", question, got, want)
		}
	}
}
