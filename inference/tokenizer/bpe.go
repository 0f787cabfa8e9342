package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxPiece bounds the bytes merged in one go, and with them memory and time: a
// longer unbroken run is cut here, at a character. The ids still stand for the
// same bytes; only around a cut may they differ from an unbounded encoder's.
const maxPiece = 1 << 16

// bpe is byte-level byte-pair encoding as GPT-2 introduced it: text is split by
// a pre-tokenizer, the bytes of each piece are merged in the order learned. A
// byte that the vocabulary lacks is left out, as the reference encoders do.
type bpe struct {
	vocabulary
	split   splitter
	nfc     bool
	byteIDs [256]int32 // -1: the vocabulary lacks the byte
	merges  *pairTable
	whole   map[string]int32 // pieces known to become one token
	mergers sync.Pool        // of *merger
}

// bpeConfig is what a vocabulary file says beside its tokens.
type bpeConfig struct {
	merges       [][2]string // spellings, earliest first
	split        splitter
	ignoreMerges bool // a piece that is a token is taken as it is
	nfc          bool // text is normalised to NFC first
}

func newBPE(v vocabulary, cfg bpeConfig) (*bpe, error) {
	t := &bpe{vocabulary: v, split: cfg.split, nfc: cfg.nfc}
	t.mergers.New = func() any { return new(merger) }
	for b, r := range byteAlphabet() {
		t.byteIDs[b] = -1
		if id, ok := t.ids[string(r)]; ok && t.mergeable(id) {
			t.byteIDs[b] = id
		}
	}
	var err error
	if t.merges, err = v.readMerges(cfg.merges); err != nil {
		return nil, err
	}
	t.indexWhole(cfg.ignoreMerges)
	return t, nil
}

// mergeable reports whether ordinary text may become the token.
func (v *vocabulary) mergeable(id int32) bool {
	k := v.kinds[id]
	return k != kindControl && k != kindUnknown && k != kindByte
}

// readMerges is the table of merges, their rank their place in the list.
func (v *vocabulary) readMerges(merges [][2]string) (*pairTable, error) {
	table := newPairTable(len(merges))
	for rank, m := range merges {
		left, okL := v.ids[m[0]]
		right, okR := v.ids[m[1]]
		merged, ok := v.ids[m[0]+m[1]]
		if !okL || !okR || !ok {
			return nil, fmt.Errorf("%w: merge %d (%q + %q) names a token that is not in the vocabulary", ErrMalformed, rank, m[0], m[1])
		}
		if v.mergeable(merged) {
			table.add(left, right, uint32(rank), merged)
		}
	}
	return table, nil
}

// indexWhole finds the tokens that their own bytes always become, so that most
// words take one look-up.
func (t *bpe) indexWhole(ignoreMerges bool) {
	t.whole = make(map[string]int32, len(t.spellings))
	m := new(merger)
	for i, k := range t.kinds {
		id := int32(i)
		piece := string(t.Piece(id))
		if k != kindNormal || piece == "" || t.split(piece) != len(piece) {
			continue
		}
		if ignoreMerges || t.mergesTo(m, piece, id) {
			t.whole[piece] = id
		}
	}
}

func (t *bpe) mergesTo(m *merger, piece string, id int32) bool {
	t.merge(m, piece)
	return len(m.symbols) > 0 && m.symbols[0].id == id && m.symbols[0].next < 0
}

// Encode implements Tokenizer.
func (t *bpe) Encode(dst []int32, text string) []int32 {
	return t.encode(dst, text, t.userDefined, t)
}

// EncodeScaffold implements Tokenizer.
func (t *bpe) EncodeScaffold(dst []int32, text string) []int32 {
	return t.encode(dst, text, t.scaffold, t)
}

func (t *bpe) encodePlain(dst []int32, text string, _ bool) []int32 {
	if t.nfc {
		text = norm.NFC.String(text)
	}
	m := t.mergers.Get().(*merger)
	defer t.mergers.Put(m)
	for text != "" {
		n := t.split(text)
		dst = t.encodePiece(dst, m, text[:n])
		text = text[n:]
	}
	return dst
}

func (t *bpe) encodePiece(dst []int32, m *merger, piece string) []int32 {
	if id, ok := t.whole[piece]; ok {
		return append(dst, id)
	}
	for piece != "" {
		n := cut(piece, maxPiece)
		t.merge(m, piece[:n])
		dst = m.appendIDs(dst)
		piece = piece[n:]
	}
	return dst
}

func (t *bpe) merge(m *merger, piece string) {
	m.reset()
	for i := range len(piece) {
		if id := t.byteIDs[piece[i]]; id >= 0 {
			m.add(id, int32(i), int32(i)+1)
		}
	}
	m.run(piece, t)
}

func (t *bpe) pair(_ string, left, right *symbol) (uint32, int32) {
	return t.merges.get(left.id, right.id)
}

// appendIDs appends the tokens that are left after run.
func (m *merger) appendIDs(dst []int32) []int32 {
	if len(m.symbols) == 0 {
		return dst
	}
	for i := int32(0); i >= 0; i = m.symbols[i].next {
		dst = append(dst, m.symbols[i].id)
	}
	return dst
}

// cut is the largest length up to limit that does not divide a character of s.
func cut(s string, limit int) int {
	if len(s) <= limit {
		return len(s)
	}
	for n := limit; n > limit-utf8.UTFMax; n-- {
		if utf8.RuneStart(s[n]) {
			return n
		}
	}
	return limit
}

// byteAlphabet is the printable character that stands for each byte in the
// spellings of a byte-level vocabulary: itself for those visible in Latin-1,
// the others from U+0100 upwards (GPT-2's encoder.py).
func byteAlphabet() [256]rune {
	var table [256]rune
	next := rune(256)
	for b := range table {
		r := rune(b)
		if r >= '!' && r <= '~' || r >= 0xa1 && r <= 0xac || r >= 0xae {
			table[b] = r
			continue
		}
		table[b] = next
		next++
	}
	return table
}

// byteSpeller turns spellings of a byte-level vocabulary into bytes.
type byteSpeller map[rune]byte

func newByteSpeller() byteSpeller {
	s := make(byteSpeller, 256)
	for b, r := range byteAlphabet() {
		s[r] = byte(b)
	}
	return s
}

// bytes is what the spelling stands for; one with characters outside the
// alphabet was added later and stands for itself.
func (s byteSpeller) bytes(spelling string) []byte {
	out := make([]byte, 0, len(spelling))
	for _, r := range spelling {
		b, ok := s[r]
		if !ok {
			return []byte(spelling)
		}
		out = append(out, b)
	}
	return out
}

// splitMerge reads a merge as vocabulary files write it: two spellings with a
// space between, neither empty.
func splitMerge(line string) ([2]string, error) {
	if line != "" {
		if left, right, ok := strings.Cut(line[1:], " "); ok && right != "" {
			return [2]string{line[:1] + left, right}, nil
		}
	}
	return [2]string{}, fmt.Errorf("%w: merge %q is not two tokens", ErrMalformed, line)
}
