package ingest_test

import (
	"testing"

	"golang.org/x/text/unicode/norm"

	"ragd/ingest"
)

func TestHasText(t *testing.T) {
	for s, want := range map[string]bool{
		"a": true, "가": true, "7": true, "½": true, "☂": true, " \u200b x": true, "翡": true,
		"": false, " \t\n": false, "--- *** |": false, "\u200b\u00a0\u3000\ufeff": false, "\u3164\u115f": false, "\ufffd": false, "\u2800": false, "```\n```": false,
	} {
		if got := ingest.HasText(s); got != want {
			t.Errorf("HasText(%q) = %v", s, got)
		}
	}
}

func TestComposeHangul(t *testing.T) {
	for s, want := range map[string]string{
		"":       "",
		"회의록 v2": "회의록 v2",
		norm.NFD.String("예비 열쇠는 7번 값"):                    "예비 열쇠는 7번 값",
		norm.NFD.String("뷁 é"):                            "뷁 " + norm.NFD.String("é"),
		"K\u212b \uf900 \u1100 \u1161 \u1100\u1176\u11f9": "K\u212b \uf900 \u1100 \u1161 \u1100\u1176\u11f9", // signs, letters alone, old Hangul
		"\xe1\x85": "\xe1\x85",
	} {
		if got := ingest.ComposeHangul(s); got != want {
			t.Errorf("%+q became %+q, want %+q", s, got, want)
		}
	}
}

func TestEmbedTextPutsTheHeadingPathFirst(t *testing.T) {
	c := ingest.Chunk{Heading: []string{"A", "B"}, Text: "body"}
	if got := c.EmbedText(); got != "A > B\nbody" {
		t.Errorf("got %q", got)
	}
}
