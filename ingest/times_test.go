package ingest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ragd/ingest"
	"ragd/ingest/ingesttest"
)

// slowStations takes a known time at each station, in the clock of a synctest bubble.
type slowStations struct {
	ingest.Source
	*ingesttest.FakeEmbedder
	*ingesttest.MemoryStore
}

func (s slowStations) Find(context.Context, []string) (ingest.Listing, error) {
	return ingest.Listing{Files: []ingest.File{{Path: "a"}, {Path: "b"}}}, nil
}

func (s slowStations) Load(_ context.Context, f ingest.File) (ingest.Raw, error) {
	time.Sleep(time.Second)
	return ingest.Raw{File: f, Hash: f.Path}, nil
}

func (s slowStations) Extract(_ context.Context, r ingest.Raw) (ingest.Document, error) {
	time.Sleep(time.Second)
	return ingest.Document{Path: r.File.Path, Text: r.File.Path, Hash: r.Hash}, nil
}

func (s slowStations) Chunk(d *ingest.Document) ([]ingest.Chunk, error) {
	time.Sleep(5 * time.Second)
	return []ingest.Chunk{{Text: d.Text, End: len(d.Text), Tokens: s.CountPassage(d.Text)}}, nil
}

func (s slowStations) Recipe() string { return "slow" }

func (s slowStations) EmbedPassages(ctx context.Context, texts []string) ([]ingest.Embedding, error) {
	time.Sleep(40 * time.Second)
	return s.FakeEmbedder.EmbedPassages(ctx, texts)
}

func (s slowStations) Put(ctx context.Context, collection, model, recipe string, e ingest.Encoded) (bool, error) {
	time.Sleep(100 * time.Second)
	return s.MemoryStore.Put(ctx, collection, model, recipe, e)
}

func TestReportSaysWhereTheTimeWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slowStations{FakeEmbedder: &ingesttest.FakeEmbedder{}, MemoryStore: &ingesttest.MemoryStore{}}
		cfg := ingest.DefaultConfig("c")
		cfg.WindowTokens, cfg.Sentences = 1, ingest.SentencesOff // a window a document
		road, err := ingest.New(s, s, s, s, cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		report, err := road.Run(t.Context(), nil)
		if err != nil || report.Indexed != 2 {
			t.Fatalf("%+v, %v", report, err)
		}
		want := ingest.Times{Read: 4 * time.Second, Chunk: 10 * time.Second, Embed: 80 * time.Second, Store: 200 * time.Second}
		if report.Times != want {
			t.Errorf("times %+v, want %+v", report.Times, want)
		}
		// The first document is read, cut and embedded before the second is embedded and stored.
		if want := (2 + 5 + 40 + 40 + 100) * time.Second; report.Elapsed != want {
			t.Errorf("%v in all, want %v", report.Elapsed, want)
		}
	})
}
