package sample

// jsonState is a position inside a JSON text (RFC 8259) that must be one
// object, byte by byte. It is a small value: a copy is a snapshot.
type jsonState struct {
	mode  jsonMode
	key   bool   // the string being read is a key
	left  uint8  // bytes still to come of a character or an escape
	low   byte   // bounds of the next continuation byte
	high  byte   //
	word  string // rest of true, false or null
	blank uint8  // length of the run of white space
	depth uint8
	stack uint64 // one bit a level: 1 for an object
}

type jsonMode uint8

const (
	atStart     jsonMode = iota
	atFirstKey           // after {
	atKey                // after , in an object
	atColon              // after a key
	atValue              // after : or , in an array
	atFirstItem          // after [
	afterValue           // a value is complete
	inString             // between the quotes
	inCharacter          // inside a UTF-8 sequence
	inEscape             // after a backslash
	inHex                // inside \uXXXX
	inWord               // inside true, false or null
	afterMinus           // of a number
	afterZero            // a leading zero is complete
	inInteger            //
	afterPoint           //
	inFraction           //
	afterE               //
	afterESign           //
	inExponent           //
	atEnd                // the object is closed
)

const (
	maxJSONDepth = 64 // bits of the stack
	// maxBlank bounds runs of white space, in which small models get stuck.
	maxBlank = 64
)

// step reads one byte; false means that it cannot stand here.
func (s *jsonState) step(c byte) bool {
	switch s.mode {
	case inString:
		return s.inString(c)
	case inCharacter:
		return s.continuation(c)
	case inEscape:
		return s.escape(c)
	case inHex:
		return s.hex(c)
	case inWord:
		return s.inWord(c)
	case afterMinus, afterZero, inInteger, afterPoint, inFraction, afterE, afterESign, inExponent:
		return s.number(c)
	}
	if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
		s.blank++
		return s.mode != atEnd && s.blank <= maxBlank
	}
	s.blank = 0
	return s.structure(c)
}

// structure reads what stands between the values.
func (s *jsonState) structure(c byte) bool {
	switch s.mode {
	case atStart:
		return c == '{' && s.open(true)
	case atFirstKey:
		return c == '"' && s.quote(true) || c == '}' && s.close(true)
	case atKey:
		return c == '"' && s.quote(true)
	case atColon:
		s.mode = atValue
		return c == ':'
	case atFirstItem:
		return c == ']' && s.close(false) || s.value(c)
	case atValue:
		return s.value(c)
	case afterValue:
		return s.afterValue(c)
	}
	return false
}

func (s *jsonState) inObject() bool { return s.stack>>(s.depth-1)&1 == 1 }

func (s *jsonState) open(object bool) bool {
	if s.depth == maxJSONDepth {
		return false
	}
	bit := uint64(1) << s.depth
	s.stack &^= bit
	s.mode = atFirstItem
	if object {
		s.stack |= bit
		s.mode = atFirstKey
	}
	s.depth++
	return true
}

func (s *jsonState) close(object bool) bool {
	if s.inObject() != object {
		return false
	}
	s.depth--
	s.mode = afterValue
	if s.depth == 0 {
		s.mode = atEnd
	}
	return true
}

func (s *jsonState) quote(key bool) bool {
	s.mode, s.key = inString, key
	return true
}

func (s *jsonState) afterValue(c byte) bool {
	switch c {
	case ',':
		s.mode = atValue
		if s.inObject() {
			s.mode = atKey
		}
		return true
	case '}':
		return s.close(true)
	case ']':
		return s.close(false)
	}
	return false
}

// value reads the first byte of a value.
func (s *jsonState) value(c byte) bool {
	switch {
	case c == '"':
		return s.quote(false)
	case c == '{' || c == '[':
		return s.open(c == '{')
	case c == '-':
		s.mode = afterMinus
	case c == '0':
		s.mode = afterZero
	case c >= '1' && c <= '9':
		s.mode = inInteger
	case c == 't':
		s.mode, s.word = inWord, "rue"
	case c == 'f':
		s.mode, s.word = inWord, "alse"
	case c == 'n':
		s.mode, s.word = inWord, "ull"
	default:
		return false
	}
	return true
}

func (s *jsonState) inWord(c byte) bool {
	if s.word[0] != c {
		return false
	}
	if s.word = s.word[1:]; s.word == "" {
		s.mode = afterValue
	}
	return true
}

// number reads on in a number, or ends it with what follows.
func (s *jsonState) number(c byte) bool {
	digit := c >= '0' && c <= '9'
	exponent := c == 'e' || c == 'E'
	switch m := s.mode; {
	case digit && m == afterMinus:
		s.mode = inInteger
		if c == '0' {
			s.mode = afterZero
		}
	case digit && (m == afterPoint || m == inFraction):
		s.mode = inFraction
	case digit && (m == afterE || m == afterESign || m == inExponent):
		s.mode = inExponent
	case digit:
		return m == inInteger
	case c == '.' && (m == afterZero || m == inInteger):
		s.mode = afterPoint
	case exponent && (m == afterZero || m == inInteger || m == inFraction):
		s.mode = afterE
	case (c == '+' || c == '-') && m == afterE:
		s.mode = afterESign
	case m == afterZero || m == inInteger || m == inFraction || m == inExponent:
		s.mode = afterValue
		return s.step(c)
	default:
		return false
	}
	return true
}
