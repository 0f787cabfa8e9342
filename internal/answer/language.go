package answer

import "unicode"

// language guesses the language of a question from its script: "ko", "ja", "zh"
// or, for everything else, "en". It only has to tell apart the languages that
// the fixed wording and the answer mode distinguish.
func language(text string) string {
	var hangul, kana, han, latin int
	for _, r := range text {
		switch {
		case unicode.Is(unicode.Hangul, r):
			hangul++
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana++
		case unicode.Is(unicode.Han, r):
			han++
		case unicode.Is(unicode.Latin, r):
			latin++
		}
	}
	// A Korean question about English names may hold little more Hangul than its
	// particles ("PostgreSQL의 HNSW ef_search는?"); an English one may quote a
	// Korean word.
	switch {
	case hangul > 0 && 12*hangul >= latin:
		return "ko"
	case kana > 0:
		return "ja"
	case han > 0 && 4*han >= latin:
		return "zh"
	}
	return "en"
}
