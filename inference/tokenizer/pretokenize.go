package tokenizer

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// A splitter gives the length in bytes of the first piece of s (not empty);
// merges never cross from one piece to the next.
type splitter func(s string) int

// newSplitter is the pre-tokenizer of that name; the names are those of
// tokenizer.ggml.pre. Each is a published regular expression as a scanner,
// because its lookahead is beyond package regexp.
//
//	gpt-2      's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//	smollm     every \p{N} alone, then gpt-2 on what lies between
//	llama-bpe  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//	           ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//	qwen2      llama-bpe with \p{N} in place of \p{N}{1,3}
func newSplitter(name string) (splitter, error) {
	switch name {
	case "gpt-2":
		return splitGPT2, nil
	case "smollm":
		return splitSmolLM, nil
	case "llama-bpe":
		return splitLlama3, nil
	case "qwen2":
		return splitQwen2, nil
	}
	return nil, fmt.Errorf("%w: pre-tokenizer %q", ErrUnsupported, name)
}

// class is what the pre-tokenizers tell apart: \p{L}, \p{N}, \s and the rest, by
// the Unicode version of package unicode.
type class uint8

const (
	other class = iota
	letter
	number
	space
)

// first is the class and width of the first character of s; a byte that is
// not UTF-8 is a character of class other.
func first(s string) (c class, width int) {
	b := s[0]
	if b >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(s)
		return classOf(r), n
	}
	switch {
	case 'a' <= b|0x20 && b|0x20 <= 'z':
		return letter, 1
	case '0' <= b && b <= '9':
		return number, 1
	case b == ' ' || '\t' <= b && b <= '\r':
		return space, 1
	}
	return other, 1
}

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// run is the end of the characters of class c that begin at i.
func run(s string, i int, c class) int {
	for i < len(s) {
		k, n := first(s[i:])
		if k != c {
			break
		}
		i += n
	}
	return i
}

func splitGPT2(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	lead := 0
	if s[0] == ' ' && len(s) > 1 {
		lead = 1
	}
	if c, _ := first(s[lead:]); c != space {
		return run(s, lead, c)
	}
	return splitSpace(s, run(s, 0, space))
}

func splitSmolLM(s string) int {
	c, n := first(s)
	if c == number {
		return n
	}
	if c == space {
		// A number ends the text that the gpt-2 pattern sees, so white space in
		// front of it stays whole.
		end := run(s, 0, space)
		if end < len(s) {
			if after, _ := first(s[end:]); after == number {
				return end
			}
		}
	}
	return splitGPT2(s)
}

// splitSpace is \s+(?!\S)|\s+ for the white space s[:end]: its last character
// is left to the next piece unless it is the only one or the text ends.
func splitSpace(s string, end int) int {
	if end == len(s) {
		return end
	}
	_, last := utf8.DecodeLastRuneInString(s[:end])
	if last == end {
		return end
	}
	return end - last
}

// contraction is the length of 's 't 'm 'd 're 've 'll at the start of s.
func contraction(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(s) < 3 {
		return 0
	}
	switch s[1:3] {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}

func splitLlama3(s string) int { return splitModern(s, 3) }

func splitQwen2(s string) int { return splitModern(s, 1) }

// splitModern is the pattern of llama-bpe with at most digits numbers a piece.
func splitModern(s string, digits int) int {
	if n := contractionFold(s); n > 0 {
		return n
	}
	c, n := first(s)
	switch c {
	case letter:
		return run(s, n, letter)
	case number:
		return numbers(s, digits)
	}
	newline := s[0] == '\r' || s[0] == '\n'
	if !newline && n < len(s) {
		if after, _ := first(s[n:]); after == letter {
			return run(s, n, letter)
		}
	}
	if end := punctuation(s); end > 0 {
		return end
	}
	end := run(s, 0, space)
	for i := end; i > 0; i-- {
		if s[i-1] == '\n' || s[i-1] == '\r' {
			return i
		}
	}
	return splitSpace(s, end)
}

// numbers is \p{N}{1,limit}.
func numbers(s string, limit int) int {
	i := 0
	for range limit {
		if i == len(s) {
			break
		}
		c, n := first(s[i:])
		if c != number {
			break
		}
		i += n
	}
	return i
}

// punctuation is " ?[^\s\p{L}\p{N}]+[\r\n]*"; 0 if s does not begin with it.
func punctuation(s string) int {
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	end := run(s, start, other)
	if end == start {
		return 0
	}
	for end < len(s) && (s[end] == '\r' || s[end] == '\n') {
		end++
	}
	return end
}

// contractionFold is contraction for any case.
func contractionFold(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	var low [3]byte
	n := copy(low[:], s)
	for i := 1; i < n; i++ {
		if 'A' <= low[i] && low[i] <= 'Z' {
			low[i] |= 0x20
		}
	}
	return contraction(string(low[:n]))
}
