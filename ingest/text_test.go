package ingest_test

import (
	"testing"

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

func TestEmbedTextPutsTheHeadingPathFirst(t *testing.T) {
	c := ingest.Chunk{Heading: []string{"A", "B"}, Text: "body"}
	if got := c.EmbedText(); got != "A > B\nbody" {
		t.Errorf("got %q", got)
	}
}
