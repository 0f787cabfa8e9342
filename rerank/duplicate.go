package rerank

import (
	"hash/maphash"
	"unicode"
)

// shingleSize is in characters, not words, so that Korean and English texts are
// treated alike.
const shingleSize = 8

// shingleIndex holds the shingle sets of the texts seen so far.
type shingleIndex struct {
	seed maphash.Seed
	sets []map[uint64]struct{}
}

// add reports whether text is new: its Jaccard similarity to every text seen
// stays below the threshold. A new text is remembered.
func (x *shingleIndex) add(text string, threshold float64) bool {
	if x.sets == nil {
		x.seed = maphash.MakeSeed()
	}
	set := x.shingles(text)
	for _, other := range x.sets {
		if jaccard(set, other) >= threshold {
			return false
		}
	}
	x.sets = append(x.sets, set)
	return true
}

// shingles are hashes of every run of shingleSize letters and digits, so that
// white space, punctuation and case make no difference.
func (x *shingleIndex) shingles(text string) map[uint64]struct{} {
	runes := make([]rune, 0, len(text))
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			runes = append(runes, unicode.ToLower(r))
		}
	}
	set := make(map[uint64]struct{}, len(runes))
	for i := 0; i == 0 || i+shingleSize <= len(runes); i++ {
		set[maphash.String(x.seed, string(runes[i:min(i+shingleSize, len(runes))]))] = struct{}{}
	}
	return set
}

func jaccard(a, b map[uint64]struct{}) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	both := 0
	for h := range a {
		if _, ok := b[h]; ok {
			both++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
