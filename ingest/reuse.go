package ingest

import "crypto/sha256"

// textKey stands for a text: its SHA-256, so that no two texts share one.
type textKey [sha256.Size]byte

func keyOf(text string) textKey { return sha256.Sum256([]byte(text)) }

// vectors remembers the embeddings of a run, so that a text that comes again is
// not embedded again: a licence, a footer, a line that repeats. Memory is bounded
// by two generations: once the young one is full, the old one is forgotten and
// the young one takes its place; what is asked for becomes young again.
type vectors struct {
	generation int // texts in one generation
	young, old map[textKey]Embedding
}

// entryBytes is what a text takes beside its vector: key, slice header, token
// count and the map's slack.
const entryBytes = 128

// newVectors makes room for as many vectors of dim numbers as fit into bytes; none
// when bytes is 0.
func newVectors(bytes, dim int) *vectors {
	return &vectors{generation: bytes / (4*dim + entryBytes) / 2, young: map[textKey]Embedding{}}
}

func (v *vectors) get(key textKey) (Embedding, bool) {
	if e, ok := v.young[key]; ok {
		return e, true
	}
	e, ok := v.old[key]
	if ok {
		v.put(key, e)
	}
	return e, ok
}

func (v *vectors) put(key textKey, e Embedding) {
	if v.generation == 0 {
		return
	}
	if len(v.young) >= v.generation {
		v.young, v.old = make(map[textKey]Embedding), v.young
	}
	v.young[key] = e
}
