package markdown

import "testing"

func TestIsItem(t *testing.T) {
	for line, want := range map[string]bool{
		"- a": true, "* a": true, "• a": true, "1. a": true, "12) a": true, "(3) a": true, "○ 점검": true, "□점검": true, "※ 비고": true,
		"ㅇ 점검": true, "가. 점검": true, "(나) 점검": true, "하) 점검": true, "① 점검": true, "㉮ 점검": true,
		"": false, "-a": false, "○○시 시장": false, "2024. 3. 15.": false, "3.14 mm": false, "값. 그리고": false, "a. b": false, "점검": false,
	} {
		if got := IsItem(line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
