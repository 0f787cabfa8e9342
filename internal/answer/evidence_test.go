package answer

import (
	"testing"

	"ragd/retrieve"
)

func TestQuotable(t *testing.T) {
	for text, want := range map[string]bool{
		"The cache is kept in blocks of 16 tokens.":  true,
		"백업은 `ragd db dump` 명령으로 만든다.":               true,
		"**FastAPI** reads the type of a parameter.": true,
		"- Blocks hold 16 tokens each.":              true,
		"3. Restart the server afterwards.":          true,
		"14톤까지 들어 올린다.":                              true,
		"○ 승강기는 공단이 매년 5월에 검사한다":                     true,
		"※ 비상 발전기는 지하 2층에 있다.":                       true,
		"① 열쇠는 관리실에 둔다":                              true,
		"「개인정보 보호법」에 따라 보관한다.":                       true,
		"『안전 안내서』 3쪽의 그림을 본다.":                       true,
		"• Keys are kept in the office.":             true,
		"배터리는 2년마다 교체한다(최근 교체: 2025. 11. 3.).":       true,
		"가) 나) 다) 라) (마) (바) (사) 아) 자)":              false,
		"○ □ ○": false,
		"See [the guide](https://example.org/a/very/long/path?x=1).": true,
		"# A heading":                    false,
		"```python":                      false,
		"|---|---|":                      false,
		"| a | b |":                      false,
		"/// note | 참고":                  false,
		"{* ../../src/tutorial.py *}":    false,
		"[영문 버전](ENGLISH_VERSION_URL)":   false,
		"<div class=\"x\">":              false,
		"https://example.org/somewhere":  false,
		"---":                            false,
		"":                               false,
		"x = a[1] + b[2] * (c - d) / e;": false,
	} {
		if got := quotable(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// The hit that holds the code asked for is quoted, though another's sentence lies
// nearer to the question.
func TestNamedHitIsQuotedFirst(t *testing.T) {
	hits := []retrieve.Hit{chunk(1, "fault 7012", "Tighten the bolt at once."), chunk(2, "fault 7021", "Order a new belt today.")}
	hits[0].SentenceVectors[0] = []float32{0.5, 0}
	if best := supporting([]float32{1, 0}, hits)[0]; best.hit != 1 {
		t.Errorf("without a name, hit %d comes first", best.hit)
	}
	hits[0].Scores.Named = true
	if best := supporting([]float32{1, 0}, hits)[0]; best.hit != 0 {
		t.Errorf("with a name, hit %d comes first", best.hit)
	}
}
