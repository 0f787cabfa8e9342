package eval

import (
	"regexp"
	"strings"
	"unicode"
)

// Match is how well an answer's text agrees with the gold answers, 0 to 1 each.
type Match struct {
	// EM is 1 when the two are the same after normalisation.
	EM float64 `json:"em"`
	// F1 is the harmonic mean of the shares of shared words (English) or
	// characters (Korean).
	F1 float64 `json:"f1"`
	// Contains is 1 when the gold answer stands in the answer, normalised: how RGB
	// counts (Chen et al., 2023). Whole sentences are no exact matches, yet right.
	Contains float64 `json:"contains"`
}

// match compares an answer with each gold answer and takes the best of each
// measure: for a Korean question as the published script of KorQuAD 1.0 does, for
// any other as that of SQuAD 2.0.
func match(question, answer string, gold []string) Match {
	var best Match
	norm, units := squadNormal, strings.Fields
	if korean(question) {
		norm, units = korquadNormal, characters
	}
	for _, g := range gold {
		a, b := norm(answer), norm(g)
		best.F1 = max(best.F1, overlap(units(a), units(b)))
		if a == b {
			best.EM = 1
		}
		if b != "" && strings.Contains(a, b) {
			best.Contains = 1
		}
	}
	return best
}

func korean(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Hangul, r) })
}

var articles = regexp.MustCompile(`(^|[^\pL\pN_])(?:a|an|the)($|[^\pL\pN_])`)

// squadNormal lowers the case, drops ASCII punctuation and articles and makes
// white space single (Rajpurkar et al., 2016).
func squadNormal(s string) string {
	words := strings.Fields(withoutPunctuation(strings.ToLower(s)))
	// Only an article between other signs than letters, digits and spaces is left
	// to the expression, such as in "«the»".
	text := " " + strings.Join(words, "  ") + " "
	return strings.Join(strings.Fields(articles.ReplaceAllString(text, "$1 $2")), " ")
}

// korquadNormal makes quotes and brackets spaces, lowers the case, drops ASCII
// punctuation and makes white space single (Lim et al., 2019).
func korquadNormal(s string) string {
	s = strings.Map(func(r rune) rune {
		if strings.ContainsRune(`'"《》<>〈〉()‘’`, r) {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(withoutPunctuation(strings.ToLower(s))), " ")
}

func withoutPunctuation(s string) string {
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsPunct(r) || unicode.IsSymbol(r)) {
			return -1
		}
		return r
	}, s)
}

func characters(s string) []string {
	return strings.Split(strings.ReplaceAll(s, " ", ""), "")
}

// overlap is the F1 of two bags. Two empty ones agree.
func overlap(a, b []string) float64 {
	if len(a) == 0 || len(b) == 0 {
		if len(a) == len(b) {
			return 1
		}
		return 0
	}
	count := map[string]int{}
	for _, t := range b {
		count[t]++
	}
	shared := 0
	for _, t := range a {
		if count[t] > 0 {
			count[t]--
			shared++
		}
	}
	if shared == 0 {
		return 0
	}
	p, r := float64(shared)/float64(len(a)), float64(shared)/float64(len(b))
	return 2 * p * r / (p + r)
}
