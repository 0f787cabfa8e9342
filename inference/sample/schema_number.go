package sample

// maxExponent is how many digits an exponent has at the most: what a float64 holds
// is never left.
const maxExponent = 2

// firstDigit reads the first byte of a number.
func (t thread) firstDigit(c byte, dst []thread) []thread {
	if c == '-' {
		if t.n.kind == kindNumber || t.n.lo < 0 {
			t.mode, t.minus = tMinus, true
			dst = append(dst, t)
		}
		return dst
	}
	t.mode = tMinus
	return t.inNumber(c, dst)
}

// inNumber reads on in a number, or ends it with what follows.
func (t thread) inNumber(c byte, dst []thread) []thread {
	was := t
	switch m := t.mode; {
	case digit(c):
		if !t.addDigit(c) {
			return dst
		}
	case c == '.' && (m == tZero || m == tInteger) && t.mayPoint():
		t.mode = tPoint
	case (c == 'e' || c == 'E') && t.n.kind == kindNumber && (m == tZero || m == tInteger || m == tFraction):
		t.mode = tE
	case (c == '+' || c == '-') && m == tE:
		t.mode = tESign
	case was.number():
		return done(t.top).step(c, dst)
	default:
		return dst
	}
	if !t.possible() {
		return dst
	}
	return append(dst, t)
}

// mayPoint says whether there is room for a digit behind a point.
func (t thread) mayPoint() bool {
	if t.n.kind == kindNumber {
		return t.before < digits
	}
	return t.n.scale > 0
}

// addDigit takes a digit in, as far as there may be one more.
func (t *thread) addDigit(c byte) bool {
	switch t.mode {
	case tMinus:
		t.mode, t.before = tInteger, 1
		if c == '0' {
			t.mode = tZero
		}
	case tInteger:
		t.before++
		if int(t.before) > digits-t.n.scale {
			return false
		}
	case tPoint, tFraction:
		t.mode = tFraction
		t.fraction++
		if most := t.n.scale; t.n.kind == kindBounded && int(t.fraction) > most || int(t.before+t.fraction) > digits {
			return false
		}
	case tE, tESign, tExponent:
		t.mode = tExponent
		t.exponent++
		return t.exponent <= maxExponent
	default:
		return false
	}
	t.value = 10*t.value + int64(c-'0')
	return true
}

// number reports that what was read is a whole number, within the bounds.
func (t thread) number() bool {
	switch t.mode {
	case tZero, tInteger, tFraction, tExponent:
	default:
		return false
	}
	if t.n.kind == kindNumber {
		return true
	}
	v := t.value * power(t.n.scale-int(t.fraction))
	if t.minus {
		v = -v
	}
	return v >= t.n.lo && v <= t.n.hi
}

// possible reports that the digits so far can still become a number within the
// bounds: those that start with them are intervals, one for each number of digits
// before the point.
func (t thread) possible() bool {
	if t.n.kind == kindNumber || t.mode == tMinus {
		return true
	}
	unit := power(t.n.scale - int(t.fraction))
	more := 0
	if t.mode == tInteger {
		more = digits - t.n.scale - int(t.before)
	}
	for k := range more + 1 {
		width := power(k) * unit
		lo, hi := t.value*width, t.value*width+width-1
		if t.minus {
			lo, hi = -hi, -lo
		}
		if lo <= t.n.hi && hi >= t.n.lo {
			return true
		}
	}
	return false
}
