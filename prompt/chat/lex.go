package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokInt
	tokFloat
	tokString
	tokOp
)

type token struct {
	kind tokenKind
	s    string
	line int
}

func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "text"
	case tokString:
		return strconv.Quote(t.s)
	}
	return "'" + t.s + "'"
}

// lexer cuts a template into tokens with the whitespace rules of trim_blocks
// and lstrip_blocks.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // the last tag ended with its line
	toks      []token
}

// lex follows Jinja2: line ends become "\n" and one at the very end is dropped.
func lex(src string) ([]token, error) {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	return append(l.toks, token{tokEOF, "", l.line}), nil
}

func (l *lexer) emit(kind tokenKind, s string) {
	l.toks = append(l.toks, token{kind, s, l.line})
}

func (l *lexer) advance(n int) {
	l.line += strings.Count(l.src[l.pos:l.pos+n], "\n")
	l.pos += n
}

func (l *lexer) errorf(format string, args ...any) error {
	return &Error{Line: l.line, Construct: "syntax", Err: fmt.Errorf(format, args...)}
}

// next reads text up to a tag, and the tag.
func (l *lexer) next() error {
	rest := l.src[l.pos:]
	open := nextTag(rest)
	if open < 0 {
		l.emit(tokData, rest)
		l.advance(len(rest))
		return nil
	}
	tag := rest[open : open+2]
	sign := signAt(rest, open+2)
	if data := l.trimData(rest[:open], tag, sign); data != "" {
		l.emit(tokData, data)
	}
	l.advance(open + 2 + len(sign))
	switch tag {
	case "{#":
		return l.comment()
	case "{{":
		l.emit(tokVarBegin, tag)
		return l.inside(tokVarEnd, "}}")
	}
	if ok, err := l.raw(); ok || err != nil {
		return err
	}
	l.emit(tokBlockBegin, tag)
	return l.inside(tokBlockEnd, "%}")
}

func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return -1
}

func signAt(s string, i int) string {
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		return s[i : i+1]
	}
	return ""
}

// trimData applies a tag's sign, or lstrip_blocks, to the text before it.
func (l *lexer) trimData(data, tag, sign string) string {
	if sign == "-" {
		return strings.TrimRightFunc(data, isSpace)
	}
	if sign == "+" || tag == "{{" {
		return data
	}
	start := strings.LastIndexByte(data, '\n') + 1
	if (start > 0 || l.lineStart) && strings.TrimLeftFunc(data[start:], isSpace) == "" {
		return data[:start]
	}
	return data
}

func (l *lexer) comment() error {
	end := strings.Index(l.src[l.pos:], "#}")
	if end < 0 {
		return l.errorf("comment is not closed")
	}
	strip := end > 0 && l.src[l.pos+end-1] == '-'
	keep := end > 0 && l.src[l.pos+end-1] == '+'
	l.advance(end + 2)
	l.afterTag(strip, keep, true)
	return nil
}

// afterTag applies the sign at the end of a tag, or trim_blocks.
func (l *lexer) afterTag(strip, keep, block bool) {
	l.lineStart = false
	rest := l.src[l.pos:]
	switch {
	case strip:
		n := len(rest) - len(strings.TrimLeftFunc(rest, isSpace))
		l.lineStart = n > 0 && rest[n-1] == '\n'
		l.advance(n)
	case block && !keep && strings.HasPrefix(rest, "\n"):
		l.lineStart = true
		l.advance(1)
	}
}

// raw reads {% raw %} … {% endraw %} when it stands here.
func (l *lexer) raw() (bool, error) {
	head, ok := keywordTag(l.src[l.pos:], "raw")
	if !ok {
		return false, nil
	}
	l.closeRaw(head, false)
	rest := l.src[l.pos:]
	for i := 0; ; i += 2 {
		j := strings.Index(rest[i:], "{%")
		if j < 0 {
			return true, l.errorf("raw block is not closed")
		}
		i += j
		sign := signAt(rest, i+2)
		tail, ok := keywordTag(rest[i+2+len(sign):], "endraw")
		if !ok {
			continue
		}
		if data := l.trimData(rest[:i], "{%", sign); data != "" {
			l.emit(tokData, data)
		}
		l.advance(i + 2 + len(sign))
		l.closeRaw(tail, true)
		return true, nil
	}
}

func (l *lexer) closeRaw(n int, trim bool) {
	c := l.src[l.pos+n-3]
	l.advance(n)
	l.afterTag(c == '-', c == '+', trim)
}

// keywordTag matches ` word %}` at the start of s and gives its length.
func keywordTag(s, word string) (int, bool) {
	t := strings.TrimLeftFunc(s, isSpace)
	t, ok := strings.CutPrefix(t, word)
	if !ok {
		return 0, false
	}
	t = strings.TrimLeftFunc(t, isSpace)
	t = t[len(signAt(t, 0)):]
	t, ok = strings.CutPrefix(t, "%}")
	return len(s) - len(t), ok
}

// inside reads the tokens of an expression or statement up to its end.
func (l *lexer) inside(end tokenKind, closing string) error {
	nesting := 0
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		if r, n := utf8.DecodeRuneInString(rest); isSpace(r) {
			l.advance(n)
			continue
		}
		if nesting == 0 {
			sign := signAt(rest, 0)
			if strings.HasPrefix(rest[len(sign):], closing) && (sign != "+" || end == tokBlockEnd) {
				l.emit(end, closing)
				l.advance(len(sign) + 2)
				l.afterTag(sign == "-", sign == "+", end == tokBlockEnd)
				return nil
			}
		}
		if err := l.word(rest); err != nil {
			return err
		}
		switch last := l.toks[len(l.toks)-1]; {
		case last.kind != tokOp:
		case strings.Contains("([{", last.s):
			nesting++
		case strings.Contains(")]}", last.s):
			nesting--
		}
		if nesting < 0 {
			return l.errorf("unexpected closing bracket")
		}
	}
	return l.errorf("tag is not closed with %s", closing)
}

// word reads one token of an expression.
func (l *lexer) word(rest string) error {
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case r == '_' || unicode.IsLetter(r):
		n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(rest)
		}
		l.emit(tokName, rest[:n])
		l.advance(n)
	case r >= '0' && r <= '9':
		l.number(rest)
	case r == '\'' || r == '"':
		return l.str(rest)
	default:
		return l.operator(rest)
	}
	return nil
}

func (l *lexer) number(rest string) {
	digits := func(i int) int {
		for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
			i++
		}
		return i
	}
	n, kind := digits(0), tokInt
	if n+1 < len(rest) && rest[n] == '.' && digits(n+1) > n+1 {
		n, kind = digits(n+1), tokFloat
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		exp := n + 1 + len(signAt(rest, n+1))
		if end := digits(exp); end > exp {
			n, kind = end, tokFloat
		}
	}
	l.emit(kind, rest[:n])
	l.advance(n)
}

func (l *lexer) str(rest string) error {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			s, err := unescape(rest[1:i])
			if err != nil {
				return l.errorf("string %s: %w", rest[:i+1], err)
			}
			l.emit(tokString, s)
			l.advance(i + 1)
			return nil
		}
	}
	return l.errorf("string is not closed")
}

func (l *lexer) operator(rest string) error {
	n := 1
	if len(rest) > 1 {
		switch rest[:2] {
		case "==", "!=", "<=", ">=", "//", "**":
			n = 2
		}
	}
	if n == 1 && !strings.Contains("+-*/%~<>=.,:|()[]{}", rest[:1]) {
		r, _ := utf8.DecodeRuneInString(rest)
		return l.errorf("unexpected character %q", r)
	}
	l.emit(tokOp, rest[:n])
	l.advance(n)
	return nil
}
