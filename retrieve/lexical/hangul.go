package lexical

import (
	"strings"
	"unicode/utf8"
)

// wordMark stands before a Hangul word, so that its first syllable weighs more
// than the same syllable inside another.
const wordMark = "^"

// leftover is how many syllables a stripped ending must leave.
const leftover = 2

// endings are particles and the endings of questions and of the copula.
var endings = set(`은 는 이 가 을 를 의 에 도 로 와 과 만 에서 으로 부터 까지 에게 한테 처럼 보다 이나 이라 라는
	이라는 에는 에서는 으로는 로는 에도 하고 이며 이고 라고 이란 란 께서 조차 마저 이다 했다 하는 한 된 되는 인 했던 하여
	해서 인가 인가요 나요 까요 습니까 있나요 하나요 되나요 였나요 었나요 는가 은가`)

// longestEnding is in characters.
const longestEnding = 3

// stripEnding removes the longest ending that leaves at least two syllables.
func stripEnding(word string) string {
	n := utf8.RuneCountInString(word)
	cut := min(longestEnding, n-leftover)
	for i := range word {
		if n <= cut && endings[word[i:]] {
			return word[:i]
		}
		n--
	}
	return word
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
