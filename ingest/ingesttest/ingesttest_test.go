package ingesttest_test

import (
	"testing"

	"ragd/ingest"
	"ragd/ingest/ingesttest"
)

func TestMemoryStore(t *testing.T) {
	ingesttest.TestStore(t, func() ingest.Store { return new(ingesttest.MemoryStore) })
}

func TestNewEncodedIsConsistent(t *testing.T) {
	e := ingesttest.NewEncoded("a.md", "h")
	for i, c := range e.Chunks {
		if got := e.Document.Text[c.Start:c.End]; got != c.Text {
			t.Errorf("chunk %d is %q, its range %q", i, c.Text, got)
		}
		for _, s := range c.Sentences {
			if s.End > len(c.Text) {
				t.Errorf("chunk %d: sentence %v beyond its text", i, s)
			}
		}
	}
}
