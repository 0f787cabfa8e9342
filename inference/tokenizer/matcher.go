package tokenizer

// matcher finds tokens by their spelling, leftmost first, the longest of those
// that begin at one place.
type matcher struct {
	trie  trie
	first [256]bool
}

func newMatcher(tokens []trieEntry) (*matcher, error) {
	m := &matcher{}
	for _, t := range tokens {
		m.first[t.key[0]] = true
	}
	var err error
	m.trie, err = buildTrie(tokens)
	return m, err
}

// next is the first match in text; length 0 with start at the end if there is
// none.
func (m *matcher) next(text string) (start, length int, id int32) {
	if m.trie == nil {
		return len(text), 0, 0
	}
	for i := 0; i < len(text); i++ {
		if !m.first[text[i]] {
			continue
		}
		if n, id := m.trie.longest(text[i:]); n > 0 {
			return i, n, id
		}
	}
	return len(text), 0, 0
}
