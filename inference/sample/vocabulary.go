package sample

import "slices"

// Vocabulary is the bytes of all tokens as tries, so that a grammar can try them
// together: tokens with a common start share the work, and fail together. It is
// immutable and may serve many grammars at once.
type Vocabulary struct {
	size int
	end  []int32 // end of generation
	// plain are the tokens of printable text with no quote and no backslash, which may
	// stand anywhere in a string, and text is all of them as a set.
	plain, others trie
	text          tokenSet
	longer        int // bytes of the longest token
}

// NewVocabulary reads the pieces of size tokens. A token without bytes, such as
// a control token, can only be chosen when it is one of end.
func NewVocabulary(size int, piece func(id int32) []byte, end []int32) *Vocabulary {
	v := &Vocabulary{size: size, end: slices.Clone(end), text: newTokenSet(size)}
	var plain, others []entry
	for id := range int32(size) {
		p := piece(id)
		if len(p) == 0 || slices.Contains(end, id) {
			continue
		}
		v.longer = max(v.longer, len(p))
		if plainText(p) {
			plain = append(plain, entry{id, p})
			v.text.add(id)
		} else {
			others = append(others, entry{id, p})
		}
	}
	v.plain, v.others = newTrie(plain), newTrie(others)
	return v
}

// plainText says whether p, anywhere inside a JSON string, leaves it there.
func plainText(p []byte) bool {
	s := jsonState{mode: inString}
	for _, c := range p {
		if c == '"' || c == '\\' || !s.step(c) {
			return false
		}
	}
	return s.mode == inString
}

// allow adds the tokens whose bytes step takes, see trie.walk. With room any plain text may
// follow, and is not tried.
func (v *Vocabulary) allow(to *tokenSet, room bool, step func(depth int, c byte) bool) {
	v.others.walk(to, step)
	if room {
		to.addAll(v.text)
		return
	}
	v.plain.walk(to, step)
}
