package engine

// lookup drafts the continuation of one sequence by prompt lookup: where its last
// tokens stood in it before, what followed them then is guessed to follow them now
// (arXiv 2304.04487). Answers over given evidence quote it, and checking a guess
// costs a row of a step, several times less than a step of its own.
//
// Checking is exact, for greedy and sampled answers alike. The rule of speculative
// sampling (arXiv 2211.17192) for a draft that is certain of token x is to accept
// x with probability p(x) and otherwise to draw from p without x, renormalised.
// Drawing t from p and accepting x when t = x is the same rule, since t given
// t ≠ x has just that distribution. Each place of the answer then uses the number
// of the request's generator that it would use without a draft, so not only the
// distribution is the same but the text itself.
type lookup struct {
	size  int // tokens of the next draft
	rest  int // steps to sit out before it
	pause int // how long the next rest is
}

const (
	// shortestMatch is how many tokens must have stood before: a single one says
	// too little. A match longer than longestMatch says no more than that one.
	shortestMatch, longestMatch = 2, 8
	// Drafts grow while all of one is accepted and shrink to what was accepted.
	// mostDraft bounds what all sequences of a step draft together: their rows
	// cost time when they are refused.
	leastDraft, firstDraft, mostDraft = 2, 4, 16
	// A draft of which nothing was accepted is followed by a rest, each twice as
	// long as the one before.
	firstRest, longestRest = 2, 64
	// mostDrafting is how many sequences may run in a step that has drafts: with
	// more, the step is busy enough without them.
	mostDrafting = 4
)

func newLookup() lookup { return lookup{size: firstDraft, pause: firstRest} }

// extend appends a draft of at most most tokens.
func (l *lookup) extend(tokens []int32, most int) []int32 {
	if l.rest > 0 {
		l.rest--
		return tokens
	}
	at := match(tokens)
	if at == 0 {
		return tokens
	}
	// The draft may run into itself: then the sequence repeats a short period.
	for range min(most, l.size) {
		tokens = append(tokens, tokens[at])
		at++
	}
	return tokens
}

// learn adapts to how a draft fared.
func (l *lookup) learn(drafted, accepted int) {
	switch accepted {
	case 0:
		l.size = leastDraft
		l.rest, l.pause = l.pause, min(2*l.pause, longestRest)
		return
	case drafted:
		l.size = min(2*l.size, mostDraft)
	default:
		l.size = max(accepted, leastDraft)
	}
	l.pause = firstRest
}

// match is the place after the longest earlier occurrence of the last tokens, the
// latest where several are as long; 0 when there is none of shortestMatch tokens.
func match(tokens []int32) int {
	n := len(tokens)
	at, longest := 0, shortestMatch-1
	for end := n - 1; end > longest && longest < longestMatch; end-- {
		length := 0
		for length < min(end, longestMatch) && tokens[end-1-length] == tokens[n-1-length] {
			length++
		}
		if length > longest {
			at, longest = end, length
		}
	}
	return at
}
