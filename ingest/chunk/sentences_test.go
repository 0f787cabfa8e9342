package chunk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ragd/ingest"
	"ragd/ingest/chunk"
)

func TestSentences(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"  \n\n ", ""},
		{"One. Two! Three? Four", "One.|Two!|Three?|Four"},
		{"Pi is 3.14 and v1.2.0 is out. Next.", "Pi is 3.14 and v1.2.0 is out.|Next."},
		{"See https://ragd.example/a.b?c=d. Then go.", "See https://ragd.example/a.b?c=d.|Then go."},
		{"Use a cache, e.g. Redis, i.e. Memory, cf. Fig. 2 and Dr. Kim. Done.", "Use a cache, e.g. Redis, i.e. Memory, cf. Fig. 2 and Dr. Kim.|Done."},
		{"The answer is no. Ask again.", "The answer is no.|Ask again."},
		{"J. R. Smith wrote it. It was good.", "J. R. Smith wrote it.|It was good."},
		{"It stops... or goes on. Truly.", "It stops... or goes on.|Truly."},
		{"He said \"Stop.\" Then left. (Really.) Yes.", "He said \"Stop.\"|Then left.|(Really.)|Yes."},
		{"**Bold end.** Then more.", "**Bold end.**|Then more."},
		{"펌프는 파랗다. 밤에 돈다! 그런가? 그렇다", "펌프는 파랗다.|밤에 돈다!|그런가?|그렇다"},
		{"第一句。第二句！「第三句。」第四句", "第一句。|第二句！|「第三句。」|第四句"},
		{"1. First item is here.\n2. Second item.", "1. First item is here.|2. Second item."},
		{"short line\nanother line", "short line|another line"},
		{"This line is long enough to have been wrapped\nat a margin. Next one.", "This line is long enough to have been wrapped\nat a margin.|Next one."},
		{"이 줄은 편집기가 여백에서 자동으로 넘긴 긴 줄이라서\n다음 줄로 이어진다. 끝.", "이 줄은 편집기가 여백에서 자동으로 넘긴 긴 줄이라서\n다음 줄로 이어진다.|끝."},
		{"This line is long enough to have been wrapped\n- but a list follows", "This line is long enough to have been wrapped|- but a list follows"},
		{"This line is long enough to have been wrapped\n\nA new paragraph", "This line is long enough to have been wrapped|A new paragraph"},
		{"---\nText.\n***\nMore.", "---\nText.\n***|More."},
		// Dates as Korean writes them.
		{"시행일은 2024. 3. 15. 이며 종전 지침은 2023. 12. 31. 자로 폐지한다. 끝.", "시행일은 2024. 3. 15. 이며 종전 지침은 2023. 12. 31. 자로 폐지한다.|끝."},
		{"규정은 2024. 3. 개정되었다. 그 뒤 ’24.3.15. 시행했다. 끝.", "규정은 2024. 3. 개정되었다.|그 뒤 ’24.3.15. 시행했다.|끝."},
		{"기한은 2024. 3. 15.\n담당은 총무팀", "기한은 2024. 3. 15.|담당은 총무팀"},
		{"It was built in 1988. 14 people work there.", "It was built in 1988.|14 people work there."},
		{"방은 모두 12. 창은 3. 문은 없다.", "방은 모두 12.|창은 3.|문은 없다."},
		// Spaces of web pages and of East Asian text, and the wide full stop.
		{"One stands here.\u00a0 Two stands there.", "One stands here.|Two stands there."},
		{"펌프는 파랗다.\u3000밤에 돈다.", "펌프는 파랗다.|밤에 돈다."},
		{"文は一つ．文は二つ｡終わり", "文は一つ．|文は二つ｡|終わり"},
		// Items of Korean documents, which have neither a point nor a blank line between.
		{"○ 소방 설비는 매월 둘째 주 화요일에 시설관리팀이 점검하고 기록한다\n○ 승강기는 공단이 검사한다\n※ 비고", "○ 소방 설비는 매월 둘째 주 화요일에 시설관리팀이 점검하고 기록한다|○ 승강기는 공단이 검사한다|※ 비고"},
		{"가. 소방 설비는 매월 둘째 주 화요일에 시설관리팀이 점검하고 기록한다\n나. 승강기는 공단이 검사한다", "가. 소방 설비는 매월 둘째 주 화요일에 시설관리팀이 점검하고 기록한다|나. 승강기는 공단이 검사한다"},
		{"① 소방 설비는 매월 둘째 주 화요일에 시설관리팀이 점검하고 기록한다\n② 승강기는 공단이 검사한다\n(3) 끝", "① 소방 설비는 매월 둘째 주 화요일에 시설관리팀이 점검하고 기록한다|② 승강기는 공단이 검사한다|(3) 끝"},
	} {
		var got []string
		for _, s := range chunk.Sentences(c.text) {
			got = append(got, c.text[s.Start:s.End])
		}
		if d := cmp.Diff(c.want, strings.Join(got, "|")); d != "" {
			t.Errorf("%q: %s", c.text, d)
		}
	}
}

func TestShortSentencesAreJoined(t *testing.T) {
	text := "No. Never. The belt of the second line is checked before each shift. Good."
	chunks := cut(t, chunk.Config{Target: 64, Max: 64}, text, false)
	if d := cmp.Diff([]ingest.Span{{Start: 0, End: len(text)}}, chunks[0].Sentences); d != "" {
		t.Error(d)
	}
	text = "The belt of the first line is checked before each shift. " + text
	chunks = cut(t, chunk.Config{Target: 64, Max: 64}, text, false)
	if len(chunks[0].Sentences) != 2 {
		t.Errorf("%v", chunks[0].Sentences)
	}
}

func ExampleSentences() {
	text := "Version 1.2 is out. See e.g. the notes! 끝났다."
	for _, s := range chunk.Sentences(text) {
		fmt.Println(text[s.Start:s.End])
	}
	// Output:
	// Version 1.2 is out.
	// See e.g. the notes!
	// 끝났다.
}

func FuzzSentences(f *testing.F) {
	f.Add("One. Two?\n\nThree 3.14 e.g. x")
	f.Add("가. 나。다！\n- x")
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, s := range chunk.Sentences(text) {
			if s.Start < end || s.End <= s.Start || s.End > len(text) || ingest.HasText(text[end:s.Start]) {
				t.Fatalf("%q: span %+v after %d", text, s, end)
			}
			end = s.End
		}
		if ingest.HasText(text[end:]) {
			t.Fatalf("%q: lost %q", text, text[end:])
		}
	})
}
