package store_test

import (
	"testing"

	"ragd/ingest"
	"ragd/ingest/ingesttest"
	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve/lexical"
)

func TestConformance(t *testing.T) {
	ingesttest.TestStore(t, func() ingest.Store { return store.New(testenv.Database(t), "default", lexical.Analyzer{}) })
}
