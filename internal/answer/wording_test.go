package answer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ragd/ingest"
	"ragd/retrieve"
)

func TestUnknownCollectionSaysHowToFillIt(t *testing.T) {
	for name, want := range map[string]string{
		"default": "ragd ingest PATH", "manuals": "ragd ingest PATH --collection manuals",
		"a; rm": "ragd ingest PATH --collection 'a; rm'", "it's": `ragd ingest PATH --collection 'it'\''s'`,
	} {
		r := newRig(t, nil, &fakeGenerator{})
		r.Retriever = fakeRetriever{err: fmt.Errorf("search: %w", &ingest.NoCollectionError{Name: name})}
		_, err := r.Ask(context.Background(), time.Now(), Request{Question: "Well?", Collection: name}, &recordingSink{})
		var e *Error
		if !errors.As(err, &e) || e.Code != NotFound || !strings.HasSuffix(e.Error(), ": "+want) || !strings.Contains(e.Message, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCollectionOfAnotherModelIsAConflict(t *testing.T) {
	r := newRig(t, nil, &fakeGenerator{})
	r.Retriever = fakeRetriever{err: fmt.Errorf("search: %w", &ingest.ModelError{Collection: "a; b", Have: "old", Want: "new"})}
	_, err := r.Ask(context.Background(), time.Now(), Request{Question: "Well?"}, &recordingSink{})
	e := AsError(err)
	for _, want := range []string{`"a; b" is embedded by "old"`, `set to "new"`, "ragd reembed --collection 'a; b'"} {
		if e.Code != Conflict || !strings.Contains(e.Message, want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}

// TestRetrievedSourcesCarryTheirScores: what was dropped has one too.
func TestRetrievedSourcesCarryTheirScores(t *testing.T) {
	hits := append([]retrieve.Hit{twoChunks[0]}, twoChunks...) // the first twice, as a duplicate
	hits[1].Chunk.ID = 99
	r := newRig(t, hits, &fakeGenerator{pieces: []string{"x"}})
	res, _ := ask(t, r, Request{Question: "Well?"})
	if len(res.Sources.Retrieved) != len(hits) {
		t.Fatalf("%d retrieved of %d", len(res.Sources.Retrieved), len(hits))
	}
	for _, s := range res.Sources.Retrieved {
		if s.Score == 0 {
			t.Errorf("chunk %d has no score", s.ChunkID)
		}
	}
}

func TestQuotesLeaveMarkupLinesOut(t *testing.T) {
	for text, want := range map[string]string{
		"~~~\nThe pump needs oil.":         "The pump needs oil.",
		"```sh\nls\n```\nThen list it.":    "ls Then list it.",
		"One line.\n---":                   "One line.",
		"***\n___\nStars and lines.":       "Stars and lines.",
		"-- not a rule\nand `code` stays.": "-- not a rule and `code` stays.",
	} {
		var e extraction
		e.add(text, twoChunks[0], 1)
		if got := strings.TrimSuffix(e.text, " [1]"); got != want {
			t.Errorf("%q is quoted as %q, want %q", text, got, want)
		}
	}
}

func TestEmptyCollectionSaysHowToFillIt(t *testing.T) {
	for question, want := range map[string]string{"Well?": "holds no documents", "왜 그런가요?": "문서가 없습니다"} {
		res, _ := ask(t, newRig(t, nil, &fakeGenerator{}), Request{Question: question, Collection: "manuals"})
		if !res.Refused || !strings.Contains(res.Answer, want) || !strings.Contains(res.Answer, "ragd ingest PATH --collection manuals") {
			t.Errorf("%s: %q", question, res.Answer)
		}
	}
	res, _ := ask(t, newRig(t, nil, &fakeGenerator{}), Request{Question: "Well?", Filters: &Filters{PathPrefix: "x"}})
	if strings.Contains(res.Answer, "ragd ingest") {
		t.Errorf("a filter that leaves nothing: %q", res.Answer)
	}
}
