package tokenizer

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

// metaspace is how SentencePiece spells a space.
const metaspace = "▁"

// unknownPenalty is how far below the rarest token an unknown character scores
// (kUnkPenalty in SentencePiece's unigram_model.cc).
const unknownPenalty = 10

// unigram is SentencePiece's unigram language model (Kudo 2018,
// arXiv:1804.10959): of all ways to cut the normalised text into tokens it takes
// the one whose scores (log probabilities) add up highest.
type unigram struct {
	vocabulary
	cfg      unigramConfig
	norm     *charsmap
	trie     trie
	scores   []float32
	unknown  float64 // score of a character without a token
	joins    joins
	lattices sync.Pool // of *lattice
}

// unigramConfig is what a vocabulary file says beside its tokens and scores.
type unigramConfig struct {
	charsmap        []byte
	addSpacePrefix  bool
	mergeWhitespace bool // runs of spaces become one, those at the ends go
}

// lattice is the work space of one call: normalised text that is still to be
// cut, and the best way to reach each byte of it.
type lattice struct {
	text []byte
	best []arc
}

// arc is a token that ends at some byte and begins at start; score is that of
// the whole way up to its end.
type arc struct {
	score float64
	id    int32
	start int32
}

func newUnigram(v vocabulary, scores []float32, cfg unigramConfig) (*unigram, error) {
	if len(scores) != len(v.spellings) {
		return nil, fmt.Errorf("%w: %d scores for %d tokens", ErrMalformed, len(scores), len(v.spellings))
	}
	if v.special.UNK < 0 {
		return nil, fmt.Errorf("%w: a unigram vocabulary needs an unknown token", ErrMalformed)
	}
	t := &unigram{vocabulary: v, cfg: cfg, scores: scores}
	t.lattices.New = func() any { return new(lattice) }
	var err error
	if t.norm, err = readCharsmap(cfg.charsmap); err != nil {
		return nil, err
	}
	lowest, tokens := math.Inf(1), make([]trieEntry, 0, len(v.spellings))
	for id, s := range v.spellings {
		switch k := v.kinds[id]; {
		case s == "" || k != kindNormal && k != kindUserDefined && k != kindUnused:
			continue
		case k == kindNormal:
			lowest = min(lowest, float64(scores[id]))
		}
		tokens = append(tokens, trieEntry{s, int32(id)})
		t.joins.add(s)
	}
	if math.IsInf(lowest, 0) || math.IsNaN(lowest) {
		return nil, fmt.Errorf("%w: no lowest score among the tokens", ErrMalformed)
	}
	t.unknown = lowest - unknownPenalty
	t.trie, err = buildTrie(tokens)
	return t, err
}

// Encode implements Tokenizer.
func (t *unigram) Encode(dst []int32, text string) []int32 {
	return t.encode(dst, text, t.userDefined, t)
}

// EncodeScaffold implements Tokenizer.
func (t *unigram) EncodeScaffold(dst []int32, text string) []int32 {
	return t.encode(dst, text, t.scaffold, t)
}

func (t *unigram) encodePlain(dst []int32, text string, starts bool) []int32 {
	l := t.lattices.Get().(*lattice)
	defer t.lattices.Put(l)
	l.text = l.text[:0]
	from := len(dst)
	spaceDue := t.cfg.addSpacePrefix && starts
	for text != "" {
		part, n := t.norm.next(text)
		text = text[n:]
		for i := range len(part) {
			switch {
			case part[i] != ' ':
				if spaceDue {
					dst = t.space(dst, from, l)
				}
				spaceDue = false
				l.text = append(l.text, part[i])
			case t.cfg.mergeWhitespace:
				spaceDue = true
			default:
				dst = t.space(dst, from, l)
			}
		}
		if len(l.text) >= maxPiece {
			dst = t.flush(dst, from, l)
		}
	}
	return t.flush(dst, from, l)
}

// space appends a space to the text, which usually ends a word.
func (t *unigram) space(dst []int32, from int, l *lattice) []int32 {
	if n := len(l.text); n > 0 && !t.joins.over(l.text[n-1]) {
		dst = t.flush(dst, from, l)
	}
	l.text = append(l.text, metaspace...)
	return dst
}

// flush appends the best tokens of l.text and empties it. Unknown tokens in a
// row become one, but not with what stood in dst before from.
func (t *unigram) flush(dst []int32, from int, l *lattice) []int32 {
	if len(l.text) == 0 {
		return dst
	}
	t.search(l)
	mark := len(dst)
	for end := len(l.text); end > 0; {
		a := l.best[end]
		if n := len(dst); a.id != t.special.UNK || n == mark || dst[n-1] != a.id {
			dst = append(dst, a.id)
		}
		end = int(a.start)
	}
	slices.Reverse(dst[mark:])
	if mark > from && dst[mark] == t.special.UNK && dst[mark-1] == t.special.UNK {
		dst = slices.Delete(dst, mark, mark+1)
	}
	l.text = l.text[:0]
	return dst
}

// search fills l.best by Viterbi's algorithm, one step a character.
func (t *unigram) search(l *lattice) {
	l.best = slices.Grow(l.best[:0], len(l.text)+1)[:len(l.text)+1]
	for i := range l.best {
		l.best[i] = arc{score: math.Inf(-1), id: t.special.UNK}
	}
	l.best[0].score = 0
	for i := 0; i < len(l.text); {
		_, width := utf8.DecodeRune(l.text[i:])
		if !t.extend(l, i, width) {
			l.reach(i, i+width, t.special.UNK, t.unknown)
		}
		i += width
	}
}

// extend tries all tokens that begin at byte i and reports whether one of them
// is exactly the character there.
func (t *unigram) extend(l *lattice, i, width int) (single bool) {
	node := uint32(0)
	for end := i; end < len(l.text) && l.text[end] != 0; end++ {
		var ok bool
		if node, ok = t.trie.step(node, l.text[end]); !ok {
			break
		}
		id, ok := t.trie.value(node)
		if !ok {
			continue
		}
		score := 0.0 // a user-defined token costs nothing
		if t.kinds[id] != kindUserDefined {
			score = float64(t.scores[id])
		}
		l.reach(i, end+1, id, score)
		single = single || end+1 == i+width
	}
	return single
}

// reach offers the token id from start to end.
func (l *lattice) reach(start, end int, id int32, score float64) {
	if total := l.best[start].score + score; total > l.best[end].score {
		l.best[end] = arc{score: total, id: id, start: int32(start)}
	}
}
