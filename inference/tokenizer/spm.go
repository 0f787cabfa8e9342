package tokenizer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// sentencePiece is SentencePiece's byte-pair encoding: neighbours merge when
// their concatenation is a token, the one with the highest score first. There is
// no pre-tokenizer; a space is spelt "▁". What ends up in no token is written
// as byte tokens.
type sentencePiece struct {
	vocabulary
	addSpacePrefix bool
	// What merges and when: tokens by their score (ranks: 0 the highest, none for
	// tokens that text cannot become) or, from tokenizer.json, a list of merges.
	ranks   []uint32
	merges  *pairTable
	byteIDs [256]int32
	joins   joins
	// whole[id] is set once the spelling of a token was seen to merge to that
	// token.
	whole      []atomic.Bool
	workspaces sync.Pool // of *spmWorkspace
}

type spmWorkspace struct {
	merger
	text []byte
}

func newSentencePiece(v vocabulary, addSpacePrefix bool) *sentencePiece {
	t := &sentencePiece{vocabulary: v, addSpacePrefix: addSpacePrefix}
	t.whole = make([]atomic.Bool, len(v.spellings))
	t.workspaces.New = func() any { return new(spmWorkspace) }
	for b := range t.byteIDs {
		t.byteIDs[b] = v.special.UNK
		if id, ok := v.ids[fmt.Sprintf("<0x%02X>", b)]; ok && v.kinds[id] == kindByte {
			t.byteIDs[b] = id
		}
	}
	for s, id := range v.ids {
		if t.mergeable(id) {
			t.joins.add(s)
		}
	}
	return t
}

// rankByScore orders the tokens by score; equal scores share a rank, so that
// the leftmost pair of equals merges first.
func (t *sentencePiece) rankByScore(scores []float32) {
	sorted := slices.Clone(scores)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	t.ranks = make([]uint32, len(scores))
	for id, score := range scores {
		i, _ := slices.BinarySearch(sorted, score)
		t.ranks[id] = uint32(len(sorted) - 1 - i)
		if !t.mergeable(int32(id)) {
			t.ranks[id] = none
		}
	}
}

// Encode implements Tokenizer.
func (t *sentencePiece) Encode(dst []int32, text string) []int32 {
	return t.encode(dst, text, t.userDefined, t)
}

// EncodeScaffold implements Tokenizer.
func (t *sentencePiece) EncodeScaffold(dst []int32, text string) []int32 {
	return t.encode(dst, text, t.scaffold, t)
}

func (t *sentencePiece) encodePlain(dst []int32, text string, starts bool) []int32 {
	w := t.workspaces.Get().(*spmWorkspace)
	defer t.workspaces.Put(w)
	w.text = w.text[:0]
	if t.addSpacePrefix && starts {
		w.text = append(w.text, metaspace...)
	}
	for text != "" {
		n := t.word(text)
		w.text = appendSpaced(w.text, text[:n])
		dst = t.encodeWord(dst, w)
		text = text[n:]
	}
	return t.encodeWord(dst, w)
}

// word is the length of the first part of text that merges alone, at most
// maxPiece bytes.
func (t *sentencePiece) word(text string) int {
	for i := 1; i < min(len(text), maxPiece); i++ {
		if text[i] == ' ' && text[i-1] != ' ' && !t.joins.over(text[i-1]) {
			return i
		}
	}
	return cut(text, maxPiece)
}

func appendSpaced(dst []byte, text string) []byte {
	for i := range len(text) {
		if text[i] == ' ' {
			dst = append(dst, metaspace...)
			continue
		}
		dst = append(dst, text[i])
	}
	return dst
}

func (t *sentencePiece) encodeWord(dst []int32, w *spmWorkspace) []int32 {
	if len(w.text) == 0 {
		return dst
	}
	id, ok := t.ids[string(w.text)]
	ok = ok && t.mergeable(id)
	if ok && t.whole[id].Load() {
		w.text = w.text[:0]
		return append(dst, id)
	}
	t.merge(w, string(w.text))
	if ok && w.symbols[0].id == id {
		t.whole[id].Store(true)
	}
	for i := int32(0); i >= 0; i = w.symbols[i].next {
		dst = t.appendSymbol(dst, w.text, &w.symbols[i])
	}
	w.text = w.text[:0]
	return dst
}

func (t *sentencePiece) merge(w *spmWorkspace, text string) {
	w.reset()
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRuneInString(text[i:])
		w.add(t.token(text[i:i+n]), int32(i), int32(i+n))
		i += n
	}
	w.run(text, t)
}

// token is the id that text may become, -1 if none.
func (t *sentencePiece) token(text string) int32 {
	if id, ok := t.ids[text]; ok && t.mergeable(id) {
		return id
	}
	return -1
}

func (t *sentencePiece) appendSymbol(dst []int32, text []byte, s *symbol) []int32 {
	if s.id >= 0 {
		return append(dst, s.id)
	}
	for i := s.start; i < s.end; i++ {
		if id := t.byteIDs[text[i]]; id >= 0 {
			dst = append(dst, id)
		}
	}
	return dst
}

func (t *sentencePiece) pair(text string, left, right *symbol) (uint32, int32) {
	if t.merges != nil {
		if left.id < 0 || right.id < 0 {
			return none, 0
		}
		return t.merges.get(left.id, right.id)
	}
	id, ok := t.ids[text[left.start:right.end]]
	if !ok {
		return none, 0
	}
	return t.ranks[id], id
}

// spaced is the bytes of a SentencePiece token.
func spaced(spelling string, k kind) []byte {
	if k == kindByte {
		if b, ok := byteToken(spelling); ok {
			return []byte{b}
		}
	}
	return []byte(strings.ReplaceAll(spelling, metaspace, " "))
}

// joins are the bytes that stand before a "▁" inside some token. After any other
// byte a space begins text that can be encoded apart with the same result.
type joins [256]bool

func (j *joins) add(spelling string) {
	for i := 1; i < len(spelling); i++ {
		if strings.HasPrefix(spelling[i:], metaspace) {
			j[spelling[i-1]] = true
		}
	}
}

// over reports whether a token may go on from byte b to a space. The last byte
// of "▁" itself counts: runs of spaces stay together.
func (j *joins) over(b byte) bool { return j[b] || b == metaspace[len(metaspace)-1] }

// byteToken reads a spelling like <0x0A>.
func byteToken(spelling string) (byte, bool) {
	if len(spelling) != 6 || !strings.HasPrefix(spelling, "<0x") || spelling[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(spelling[3:5], 16, 8)
	return byte(b), err == nil
}
