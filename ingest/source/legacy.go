package source

import (
	"strings"
	"unicode/utf8"
)

// commonSyllables are the syllables that make up most of running Korean:
// particles, endings and the frequent Sino-Korean ones.
const commonSyllables = "이다는을의에가로지고하사기은한어리를인자해도시나대있그정수아서으일부라전보장제상과구" +
	"동들스마공원조안주만거위비성면선신소여오우모것적세용무게까니요된되등때습합않없번중회" +
	"관문실방표현재금물식차화경계국개입출연생명분호품목초월년내외행복확설치저작업날말글"

// koreanStats describes a text decoded as CP949.
type koreanStats struct {
	double int // two-byte characters
	hangul int // of these, Hangul syllables
	rare   int // syllables outside KS X 1001, which only CP949 has
	common int
	runs   int // of Hangul without anything between
}

// decodeCP949 accepts a text as Korean when hardly a byte is broken (a file that was
// cut, a stray byte), the two-byte characters are mostly Hangul, and the frequent
// syllables appear. The same bytes read as another East Asian encoding fail the last
// two.
func decodeCP949(data []byte) (decoded, bool) {
	d := decodeWith(data, cp949, "euc-kr")
	s := measureKorean(d.text, data)
	if s.double == 0 || d.replaced*brokenShare > s.double {
		return decoded{}, false
	}
	if s.hangul*10 < s.double*6 || s.rare*3 > s.hangul {
		return decoded{}, false
	}
	if !s.familiar() {
		return decoded{}, false
	}
	d.guessed = true
	if s.rare > 0 {
		d.charset = "cp949"
	}
	return d, true
}

// brokenShare: of so many characters one may be broken in a text whose encoding other
// evidence tells.
const brokenShare = 50

// familiar reports enough of the frequent syllables: one in five in a text of
// some length, any in a short one. A word or two without any passes when it is
// Hangul through and through. So does a long text of nothing but Hangul in words
// of Korean length: Chinese and Japanese bytes give neither.
func (s koreanStats) familiar() bool {
	switch {
	case s.hangul >= 16:
		words := s.hangul == s.double && s.hangul <= 6*s.runs
		return s.common*5 >= s.hangul || s.common > 0 && words
	case s.hangul > 8 || s.hangul < s.double || s.rare > 0:
		return s.common > 0
	}
	return true
}

func measureKorean(text string, data []byte) koreanStats {
	var s koreanStats
	inRun := false
	for _, r := range text {
		hangul := r >= 0xac00 && r <= 0xd7a3
		if hangul && !inRun {
			s.runs++
		}
		inRun = hangul
		switch {
		case r < utf8.RuneSelf:
		case hangul:
			s.double++
			s.hangul++
			if strings.ContainsRune(commonSyllables, r) {
				s.common++
			}
		default:
			s.double++
		}
	}
	s.rare = countUHC(data)
	return s
}

// countUHC counts two-byte characters outside the 94×94 plane of KS X 1001.
func countUHC(data []byte) int {
	n := 0
	for i := 0; i+1 < len(data); i++ {
		if data[i] <= 0x80 || data[i] == 0xff { // no lead byte
			continue
		}
		if data[i] < 0xa1 || data[i+1] < 0xa1 {
			n++
		}
		i++
	}
	return n
}

// alsoKorean reports a short text in valid UTF-8 whose characters outside ASCII
// are unusual ones, and spell nothing but Hangul in CP949.
func alsoKorean(data []byte) bool {
	s := measureKorean(decodeWith(data, cp949, "").text, data)
	if s.double == 0 || s.double > 8 || s.hangul != s.double || s.rare > 0 {
		return false
	}
	high, good := westernShare([]rune(string(data)))
	return good*10 < high*9
}

// westernMarks are the non-letters that Windows-1252 text really uses.
const westernMarks = "€…‘’“”•–—™ §©«»°·¿¡®£½¼"

// westernLetters are the accented letters of the large Western languages.
const westernLetters = "àáâãäåæçèéêëìíîïñòóôõöøùúûüßœÀÁÄÅÆÇÈÉÊÍÑÓÖØÚÜŒ"

// decodeWindows1252 accepts a text when at least nine of ten of its high bytes
// are such letters beside ASCII letters, or such marks.
func decodeWindows1252(data []byte) (decoded, bool) {
	d := decodeWith(data, windows1252, "windows-1252")
	if d.replaced > 0 {
		return decoded{}, false
	}
	high, good := westernShare([]rune(d.text))
	d.guessed = true
	return d, high > 0 && good*10 >= high*9
}

// westernShare counts the characters outside ASCII, and those among them that
// stand where a Western language puts them.
func westernShare(runes []rune) (high, good int) {
	prev := ' '
	for i, r := range runes {
		if r >= utf8.RuneSelf {
			high++
			next := ' '
			if i+1 < len(runes) {
				next = runes[i+1]
			}
			if western(r, prev, next) {
				good++
			}
		}
		prev = r
	}
	return high, good
}

func western(r, prev, next rune) bool {
	if strings.ContainsRune(westernMarks, r) {
		return prev < utf8.RuneSelf || next < utf8.RuneSelf
	}
	return strings.ContainsRune(westernLetters, r) && (asciiLetter(prev) || asciiLetter(next) || prev <= ' ' && next <= ' ')
}

func asciiLetter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
