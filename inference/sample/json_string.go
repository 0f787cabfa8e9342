package sample

// inString reads one byte between quotes: well-formed UTF-8 (Unicode 15.0,
// table 3-7) without control characters.
func (s *jsonState) inString(c byte) bool {
	switch {
	case c == '"':
		s.mode = afterValue
		if s.key {
			s.mode = atColon
		}
	case c == '\\':
		s.mode = inEscape
	case c < 0x20:
		return false
	case c >= 0x80:
		return s.lead(c)
	}
	return true
}

// lead reads the first byte of a character of several bytes.
func (s *jsonState) lead(c byte) bool {
	s.mode, s.low, s.high = inCharacter, 0x80, 0xbf
	switch {
	case c >= 0xc2 && c <= 0xdf:
		s.left = 1
	case c >= 0xe0 && c <= 0xef:
		s.left = 2
	case c >= 0xf0 && c <= 0xf4:
		s.left = 3
	default:
		return false
	}
	switch c {
	case 0xe0:
		s.low = 0xa0
	case 0xed:
		s.high = 0x9f
	case 0xf0:
		s.low = 0x90
	case 0xf4:
		s.high = 0x8f
	}
	return true
}

func (s *jsonState) continuation(c byte) bool {
	if c < s.low || c > s.high {
		return false
	}
	s.low, s.high = 0x80, 0xbf
	if s.left--; s.left == 0 {
		s.mode = inString
	}
	return true
}

func (s *jsonState) escape(c byte) bool {
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.mode = inString
	case 'u':
		s.mode, s.left = inHex, 4
	default:
		return false
	}
	return true
}

func (s *jsonState) hex(c byte) bool {
	if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
		return false
	}
	if s.left--; s.left == 0 {
		s.mode = inString
	}
	return true
}
