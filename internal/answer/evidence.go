package answer

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ragd/ingest"
	"ragd/rerank"
	"ragd/retrieve"
)

// supported is a sentence of a hit with its score: its cosine to the question and a
// share of the hit's own score.
type supported struct {
	hit, sentence int
	score         float32
}

// hitShare is how much of a hit's own score a sentence is given beside its cosine.
// A sentence of the best hit is more often the answer than one as near to the
// question from a hit that only resembles it. Weights of 0, 0.02, 0.05 and 0.1 were
// tried on the even halves of xquad-en (300 questions) and KorQuAD (280): of the
// quoted hits .932, .941, .951, .956 and .787, .795, .796, .800 were the right ones,
// and as many quotes held the answer. On the odd halves (288 and 202 questions) 0.05
// gives .984 in place of .963 and .886 in place of .874.
const hitShare = 0.05

// supporting lists the sentences of the hits, best first. Those of a hit that holds
// the very thing the question names come before all others: a code often stands in
// the heading, where the sentence's vector does not see it. The hits are in the
// order of the prompt, best last, so among equals a later hit wins.
func supporting(question []float32, hits []retrieve.Hit) []supported {
	var out []supported
	for i, h := range hits {
		for j, v := range h.SentenceVectors {
			if j < len(h.Chunk.Sentences) && quotable(sentence(h, j)) {
				out = append(out, supported{i, j, rerank.Cosine(question, v) + hitShare*h.Scores.Rerank})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b supported) int {
		return cmp.Or(cmp.Compare(named(hits[b.hit]), named(hits[a.hit])), cmp.Compare(b.score, a.score), cmp.Compare(b.hit, a.hit))
	})
	return out
}

func named(h retrieve.Hit) int {
	if h.Scores.Named {
		return 1
	}
	return 0
}

func sentence(h retrieve.Hit, i int) string {
	return strings.TrimSpace(slice(h.Chunk.Text, h.Chunk.Sentences[i]))
}

func slice(text string, s ingest.Span) string {
	if s.Start < 0 || s.End > len(text) || s.Start > s.End {
		return ""
	}
	return text[s.Start:s.End]
}

// quotable says whether a sentence can stand alone as an answer: it begins like
// prose or is a row of a table, and is mostly words. Headings, fences, heads and
// rules of tables, template directives and bare links are not.
func quotable(text string) bool {
	if rows := bodyRows(text); rows != nil {
		text = strings.ReplaceAll(strings.Join(rows, "\n"), "|", " ")
	}
	first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(text, leads))
	if !unicode.IsLetter(first) && !unicode.IsDigit(first) {
		return false
	}
	letters, marks, weight := 0, 0, 0
	for _, r := range withoutLinks(text) {
		switch {
		case unicode.In(r, unicode.Hangul, unicode.Han, unicode.Hiragana, unicode.Katakana):
			letters, weight = letters+1, weight+2
		case unicode.IsLetter(r), unicode.IsDigit(r):
			letters, weight = letters+1, weight+1
		case !unicode.IsSpace(r):
			marks++
		}
	}
	return letters >= minQuoteLetters && weight >= minQuoteShare*marks
}

// leads reports what may stand before the first word of prose: emphasis, quotes,
// brackets, and the bullets and numbers of Western and Korean lists.
func leads(r rune) bool {
	return strings.ContainsRune("|*_`\"'“‘([- 0123456789.)「『《〈【〔（–—·※•‣", r) ||
		r >= '\u2460' && r <= '\u24ff' || r >= '\u25a0' && r <= '\u25ff' || r >= '\u3260' && r <= '\u327b' // ①, ○ and ■, ㉮
}

const (
	// minQuoteLetters is the least number of letters and digits in a quote: a
	// short Korean sentence has about as many.
	minQuoteLetters = 6
	// minQuoteShare is how many letters stand against each mark. A syllable counts
	// twice: a Korean sentence has as many marks as an English one, and half the letters.
	minQuoteShare = 4
)

// link matches the target of a Markdown link or image, which is no prose.
var link = regexp.MustCompile(`\]\([^)]*\)|https?://\S+`)

func withoutLinks(text string) string { return link.ReplaceAllString(text, "") }

// sentenceView is a chunk cut down to the sentences that support an answer, each
// with its neighbours, in the order of the text; gaps are marked by an ellipsis.
// It is empty when the chunk has no sentence vectors.
func sentenceView(question []float32, h retrieve.Hit) string {
	best := supporting(question, []retrieve.Hit{h})
	if len(best) == 0 {
		return ""
	}
	keep := make([]bool, len(h.Chunk.Sentences))
	for _, s := range best[:min(viewSentences, len(best))] {
		for j := max(0, s.sentence-1); j <= min(len(keep)-1, s.sentence+1); j++ {
			keep[j] = true
		}
	}
	var b strings.Builder
	gap := false
	for j, span := range h.Chunk.Sentences {
		if !keep[j] {
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteString("… ")
			gap = false
		}
		b.WriteString(strings.TrimRight(slice(h.Chunk.Text, span), " \n"))
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

// viewSentences is how many supporting sentences of a chunk are shown, each with
// its neighbours.
const viewSentences = 2
