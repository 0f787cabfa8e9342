package tokenizer

import (
	"errors"
	"fmt"
	"slices"
)

// ErrNoRoom says that a pair's first text leaves no room for the second.
var ErrNoRoom = errors.New("tokenizer: no room for the second text of a pair")

// Joint is how a vocabulary makes one sequence of two texts:
// Before, the first text, Between, the second text, After.
//
//	BERT          [CLS] a [SEP] b [SEP]      two segments
//	XLM-RoBERTa   <s> a </s></s> b </s>      one segment
type Joint struct {
	Before, Between, After []int32
	// Segments says that the second text, with what follows it, is of token
	// type 1 (BERT's segment B). Elsewhere all is of type 0.
	Segments bool
}

// minSecond is the least number of tokens of a longer second text that make a
// pair worth its pass.
const minSecond = 16

// Pair is two texts as one sequence.
type Pair struct {
	Tokens []int32
	// Second is the index of the first token of type 1, 0 where there is none.
	Second int
	// Cut is how many tokens of the second text were left out.
	Cut int
}

// Join makes one sequence of at most limit tokens of two encoded texts. The first
// is never cut; the second loses its end where it does not fit. It fails with
// ErrNoRoom when less than 16 tokens of a second text would be left, and with
// ErrUnsupported when the vocabulary joins no pairs.
func Join(t Tokenizer, first, second []int32, limit int) (Pair, error) {
	j := t.Special().Pair
	if j == nil {
		return Pair{}, fmt.Errorf("%w: the vocabulary does not say how two texts are joined", ErrUnsupported)
	}
	fixed := len(j.Before) + len(first) + len(j.Between) + len(j.After)
	room := min(limit-fixed, len(second))
	if room < min(minSecond, len(second)) {
		return Pair{}, fmt.Errorf("%w: the first takes %d of %d tokens", ErrNoRoom, fixed, limit)
	}
	p := Pair{Tokens: slices.Concat(j.Before, first, j.Between, second[:room], j.After), Cut: len(second) - room}
	if j.Segments {
		p.Second = len(j.Before) + len(first) + len(j.Between)
	}
	return p, nil
}

// ids lists every token of a joint.
func (j *Joint) ids() []int32 {
	if j == nil {
		return nil
	}
	return slices.Concat(j.Before, j.Between, j.After)
}

// bertJoint is BERT's way, nil for a vocabulary without the two tokens.
func bertJoint(cls, sep int32) *Joint {
	if cls < 0 || sep < 0 {
		return nil
	}
	return &Joint{Before: []int32{cls}, Between: []int32{sep}, After: []int32{sep}, Segments: true}
}

// robertaJoint is RoBERTa's way: the separator stands twice in the middle.
func robertaJoint(bos, eos, sep int32) *Joint {
	if bos < 0 || eos < 0 {
		return nil
	}
	if sep < 0 {
		sep = eos
	}
	return &Joint{Before: []int32{bos}, Between: []int32{eos, sep}, After: []int32{eos}}
}

// joint is what a template of tokenizer.json says of pairs; nil when it says
// nothing, or what a Joint cannot hold.
func (c *component) joint() *Joint {
	var j Joint
	side, types := &j.Before, [3][]int{}
	at := 0
	for _, part := range c.Pair {
		switch {
		case part.Sequence != nil:
			if at > 1 || part.Sequence.ID != string(rune('A'+at)) {
				return nil
			}
			if at++; at == 1 {
				types[0], side = append(types[0], part.Sequence.Type), &j.Between
			} else {
				types[2], side = append(types[2], part.Sequence.Type), &j.After
			}
		case part.Special != nil:
			token := c.SpecialTokens[part.Special.ID]
			if len(token.IDs) == 0 {
				return nil
			}
			types[at] = append(types[at], part.Special.Type)
			*side = append(*side, token.IDs...)
		}
	}
	if at != 2 || !all(types[0], 0) || !all(types[1], 0) {
		return nil
	}
	j.Segments = all(types[2], 1)
	if !j.Segments && !all(types[2], 0) {
		return nil
	}
	return &j
}

func all(list []int, value int) bool {
	return !slices.ContainsFunc(list, func(v int) bool { return v != value })
}
