package markdown

import "regexp"

// signs are bullets that mean nothing else at the start of a line, but twice in a row:
// "○○시" leaves out a name.
const signs = "•▪■□○●◦‣※▶▷►▸◆◇★☆◎❍"

// item is how a line of plain text begins that is an item of a list, as Western and as
// Korean documents write them.
var item = regexp.MustCompile(`^(?:[` + signs + `][^` + signs + `]|[-–—·*+ㅇ]\s|\(?(?:\d{1,3}|` + ListLetter + `)[.)]\s|[①-⑳㉠-㉻])`)

// ListLetter matches the letters that number items: 가, 나, 다 and so on.
const ListLetter = "[가나다라마바사아자차카타파하]"

// IsItem reports whether a line begins an item of a list.
func IsItem(line string) bool { return item.MatchString(line) }
