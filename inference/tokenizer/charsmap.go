package tokenizer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// charsmap is SentencePiece's precompiled_charsmap: which character sequences
// are written in another way before the vocabulary is applied. The blob is the
// trie's size in bytes (uint32, little endian), the trie's units, then the
// replacements, each ended by a zero byte; a value in the trie is the place of a
// replacement.
type charsmap struct {
	trie         trie
	replacements string
}

// readCharsmap checks a blob; an empty one normalises nothing.
func readCharsmap(blob []byte) (*charsmap, error) {
	if len(blob) == 0 {
		return &charsmap{}, nil
	}
	if len(blob) < 4 {
		return nil, fmt.Errorf("%w: precompiled_charsmap of %d bytes", ErrMalformed, len(blob))
	}
	size := uint64(binary.LittleEndian.Uint32(blob))
	if size%4 != 0 || size == 0 || size > uint64(len(blob)-4) {
		return nil, fmt.Errorf("%w: precompiled_charsmap has %d bytes and claims a trie of %d", ErrMalformed, len(blob), size)
	}
	c := &charsmap{trie: make(trie, size/4), replacements: string(blob[4+size:])}
	for i := range c.trie {
		c.trie[i] = binary.LittleEndian.Uint32(blob[4+4*i:])
	}
	return c, nil
}

// next is what the text begins with after normalisation and how many bytes of
// it that stands for. The longest rule wins; a character without one stays, and
// a byte that is not UTF-8 becomes U+FFFD.
func (c *charsmap) next(text string) (normalised string, consumed int) {
	if n, at := c.trie.longest(text); n > 0 && int(at) <= len(c.replacements) {
		r := c.replacements[at:]
		if end := strings.IndexByte(r, 0); end >= 0 {
			r = r[:end]
		}
		return r, n
	}
	r, n := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && n <= 1 {
		return "\uFFFD", n
	}
	return text[:n], n
}
