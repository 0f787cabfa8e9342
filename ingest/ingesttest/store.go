package ingesttest

import (
	"context"
	"maps"
	"sync"

	"ragd/ingest"
)

// MemoryStore is an ingest.Store in memory. The zero value is empty and ready.
type MemoryStore struct {
	// OnPut, when set, is called before each Put with the path; its error is Put's.
	OnPut func(path string) error

	mu          sync.Mutex
	collections map[string]map[string]Stored
}

// Stored is a document as MemoryStore keeps it.
type Stored struct {
	Model, Recipe string
	ingest.Encoded
}

var _ ingest.Store = (*MemoryStore)(nil)

// States returns the states of a collection.
func (m *MemoryStore) States(ctx context.Context, collection string) (map[string]ingest.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[string]ingest.State)
	for path, s := range m.collections[collection] {
		out[path] = ingest.State{Hash: s.Document.Hash, Recipe: s.Recipe}
	}
	return out, ctx.Err()
}

// Put stores a document.
func (m *MemoryStore) Put(ctx context.Context, collection, model, recipe string, e ingest.Encoded) (bool, error) {
	if m.OnPut != nil {
		if err := m.OnPut(e.Document.Path); err != nil {
			return false, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	documents := m.collections[collection]
	if old, ok := documents[e.Document.Path]; ok && old.Document.Hash == e.Document.Hash && old.Recipe == recipe {
		return false, nil
	}
	if documents == nil {
		documents = make(map[string]Stored)
		if m.collections == nil {
			m.collections = make(map[string]map[string]Stored)
		}
		m.collections[collection] = documents
	}
	documents[e.Document.Path] = Stored{Model: model, Recipe: recipe, Encoded: e}
	return true, nil
}

// Delete removes documents.
func (m *MemoryStore) Delete(ctx context.Context, collection string, paths []string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	documents := m.collections[collection]
	before := len(documents)
	for _, p := range paths {
		delete(documents, p)
	}
	return before - len(documents), ctx.Err()
}

// Documents returns a copy of a collection, by path.
func (m *MemoryStore) Documents(collection string) map[string]Stored {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.collections[collection])
}
