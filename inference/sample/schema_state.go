package sample

import "slices"

// thread is a position inside a JSON text that must follow a schema, byte by byte.
// It is a small value: a copy is a snapshot. Where a schema leaves a choice that one
// byte does not decide, several threads go on side by side.
type thread struct {
	mode threadMode
	top  *level // the container the position is in; nil outside of any
	n    *node  // the value to come, or being read

	text  jsonState // inside a string: which byte may follow
	key   bool      // the string is a key of a free object
	hex   byte      // its last hex digit but one, of an escape
	count int       // characters of it so far

	lo, hi, pos int // inside a word: n.words[lo:hi] share pos bytes; of a name: lo, pos

	minus    bool // the number so far: sign,
	value    int64
	before   uint8 // digits before the point,
	fraction uint8 // after it,
	exponent uint8 // of the exponent

	blank uint8 // length of the run of white space
}

// level is an open container. It is never changed, since threads share it.
type level struct {
	up    *level
	n     *node
	next  int // index of the next property, or items so far
	depth int
}

// ways is how many nodes the next byte is tried with.
func (t *thread) ways() int {
	n := t.n
	switch t.mode {
	case tFirstItem:
		n = t.top.n.item(0)
	case tValue:
	default:
		return 1
	}
	if n == nil {
		return 1
	}
	return 1 + len(n.flat)
}

// same reports that the same texts can follow at two positions.
func (t *thread) same(o *thread) bool {
	if t.mode != o.mode || t.n != o.n || !t.top.same(o.top) {
		return false
	}
	a, b := *t, *o
	a.top, b.top = nil, nil
	return a == b
}

// same reports that two levels are alike, with all those around them. Levels that were
// opened by one thread are one.
func (l *level) same(o *level) bool {
	for ; l != o; l, o = l.up, o.up {
		if l == nil || o == nil || l.n != o.n || l.next != o.next || l.depth != o.depth {
			return false
		}
	}
	return true
}

type threadMode uint8

const (
	tValue     threadMode = iota // n has to come
	tFirstKey                    // after {
	tKey                         // after , in an object
	tName                        // inside the name of property lo
	tColon                       // after a key
	tFirstItem                   // after [
	tAfter                       // a value is complete
	tString                      // inside a string; text.mode says where
	tWord                        // inside one of n.words
	tMinus                       // after the sign of a number
	tZero                        // after a leading zero
	tInteger                     //
	tPoint                       //
	tFraction                    //
	tE                           //
	tESign                       //
	tExponent                    //
	tEnd                         // everything is complete
)

// step appends the positions after byte c; none when it cannot stand here.
func (t thread) step(c byte, dst []thread) []thread {
	switch t.mode {
	case tString:
		return t.inString(c, dst)
	case tName:
		return t.inName(c, dst)
	case tWord:
		return t.inWord(c, dst)
	case tMinus, tZero, tInteger, tPoint, tFraction, tE, tESign, tExponent:
		return t.inNumber(c, dst)
	case tEnd:
		return dst
	}
	if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
		if t.blank++; t.blank <= maxBlank {
			dst = append(dst, t)
		}
		return dst
	}
	t.blank = 0
	switch t.mode {
	case tValue:
		return t.begin(c, dst)
	case tColon:
		if c == ':' {
			t.mode = tValue
			dst = append(dst, t)
		}
		return dst
	case tFirstItem:
		if c == ']' {
			return t.close(c, dst)
		}
		return t.nextItem().begin(c, dst)
	}
	return t.structure(c, dst)
}

// structure reads what stands between the members of a container.
func (t thread) structure(c byte, dst []thread) []thread {
	object := t.top.n.kind == kindObject
	switch {
	case c == '}' || c == ']':
		if t.mode != tKey {
			return t.close(c, dst)
		}
	case t.mode != tAfter:
		if c == '"' {
			return t.names(dst)
		}
	case c == ',' && object:
		if t.top.n.values != nil || t.anyName() {
			t.mode = tKey
			return append(dst, t)
		}
	case c == ',':
		if next := t.nextItem(); next.n != nil {
			return append(dst, next)
		}
	}
	return dst
}

// fits reports that there is a value of n small enough for a place at this depth.
func (l *level) fits(n *node) bool { return n != nil && l.depth+n.height <= maxDepth }

// nextItem waits for another item; its node is nil when there can be none.
func (t thread) nextItem() thread {
	l := t.top
	n := l.n.item(l.next)
	if l.next >= l.n.max || !l.fits(n) {
		t.n = nil
		return t
	}
	next := *l
	next.next++
	t.mode, t.top, t.n = tValue, &next, n
	return t
}

// close ends the container if nothing is missing.
func (t thread) close(c byte, dst []thread) []thread {
	l := t.top
	switch {
	case l.n.kind == kindArray && (c != ']' || l.next < l.n.min), l.n.kind == kindObject && c != '}':
		return dst
	}
	if l.n.kind == kindObject {
		for _, p := range l.n.props[l.next:] {
			if p.required {
				return dst
			}
		}
	}
	return append(dst, done(l.up))
}

// done is the position after a complete value.
func done(top *level) thread {
	if top == nil {
		return thread{mode: tEnd}
	}
	return thread{mode: tAfter, top: top}
}

// names begins a key: a string in a free object, else each property that may come
// next, up to the first required one.
func (t thread) names(dst []thread) []thread {
	l := t.top
	if l.n.values != nil {
		if l.fits(l.n.values) {
			dst = append(dst, thread{mode: tString, top: l, n: freeKey, key: true, text: jsonState{mode: inString}})
		}
		return dst
	}
	for i := l.next; i < len(l.n.props); i++ {
		p := &l.n.props[i]
		if l.fits(p.value) {
			dst = append(dst, thread{mode: tName, top: l, lo: i, pos: 1})
		}
		if p.required {
			break
		}
	}
	return dst
}

// freeKey describes the keys of free objects.
var freeKey = &node{kind: kindString, max: unlimited}

func (t thread) anyName() bool {
	l := t.top
	for _, p := range l.n.props[l.next:] {
		if l.fits(p.value) {
			return true
		}
		if p.required {
			break
		}
	}
	return false
}

func (t thread) inName(c byte, dst []thread) []thread {
	p := &t.top.n.props[t.lo]
	if p.name[t.pos] != c {
		return dst
	}
	if t.pos++; t.pos < len(p.name) {
		return append(dst, t)
	}
	next := *t.top
	next.next = t.lo + 1
	return append(dst, thread{mode: tColon, top: &next, n: p.value})
}

// begin reads the first byte of a value.
func (t thread) begin(c byte, dst []thread) []thread {
	if t.n == nil {
		return dst
	}
	depth := 0
	if t.top != nil {
		depth = t.top.depth
	}
	for _, n := range t.n.flat {
		if depth+n.height > maxDepth {
			continue
		}
		next := thread{top: t.top, n: n}
		switch {
		case n.kind == kindObject && c == '{':
			dst = append(dst, thread{mode: tFirstKey, top: &level{t.top, n, 0, depth + 1}})
		case n.kind == kindArray && c == '[':
			dst = append(dst, thread{mode: tFirstItem, top: &level{t.top, n, 0, depth + 1}})
		case n.kind == kindString && c == '"':
			next.mode, next.text.mode = tString, inString
			dst = append(dst, next)
		case n.kind == kindWords:
			next.mode, next.hi = tWord, len(n.words)
			dst = next.inWord(c, dst)
		case n.kind == kindNumber || n.kind == kindBounded:
			dst = next.firstDigit(c, dst)
		}
	}
	return dst
}

// inWord narrows the words down to those that go on with c.
func (t thread) inWord(c byte, dst []thread) []thread {
	words, was := t.n.words, t
	for t.lo < t.hi && (len(words[t.lo]) <= t.pos || words[t.lo][t.pos] < c) {
		t.lo++
	}
	end := t.lo
	for end < t.hi && words[end][t.pos] == c {
		end++
	}
	if t.lo == end {
		if was.pos > 0 && len(words[was.lo]) == was.pos {
			return done(t.top).step(c, dst)
		}
		return dst
	}
	t.hi = end
	t.pos++
	if t.hi-t.lo == 1 && len(words[t.lo]) == t.pos && !digit(c) {
		return append(dst, done(t.top))
	}
	return append(dst, t)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// inString reads one byte between quotes, and counts the characters.
func (t thread) inString(c byte, dst []thread) []thread {
	begins := t.text.mode == inString
	if begins && c == '"' {
		if t.count < t.n.min {
			return dst
		}
		if t.key {
			return append(dst, thread{mode: tColon, top: t.top, n: t.top.n.values})
		}
		return append(dst, done(t.top))
	}
	if begins && t.count >= t.n.max {
		return dst
	}
	if t.text.mode == inHex {
		// \ud800 to \udfff are halves of a character.
		if t.text.left == 3 && (t.hex == 'd' || t.hex == 'D') && (c >= '8' && c <= '9' || c >= 'A') {
			return dst
		}
		t.hex = c
	}
	if !t.text.step(c) {
		return dst
	}
	if t.text.mode == inString {
		t.count, t.hex = t.count+1, 0
	}
	if t.n.max == unlimited && t.count > t.n.min {
		t.count = t.n.min // nobody asks how many more: equal positions stay equal
	}
	return append(dst, t)
}

// complete reports that the text may end here.
func (t thread) complete() bool {
	switch {
	case t.mode == tEnd:
		return true
	case t.top != nil:
		return false
	case t.mode == tWord:
		return len(t.n.words[t.lo]) == t.pos
	}
	return t.number()
}

// accepts reports that a JSON text is a value of the node.
func (n *node) accepts(text string) bool {
	ok, _ := n.judge(text)
	return ok
}

// mostTried bounds the positions that judge keeps side by side.
const mostTried = 32

// judge is accepts, and whether a text that is not accepted surely is no value: of too
// many positions side by side some were not followed.
func (n *node) judge(text string) (ok, sure bool) {
	now, sure := []thread{{mode: tValue, n: n}}, true
	for i := range len(text) {
		now = advance(nil, now, text[i], mostTried)
		sure = sure && len(now) < mostTried
	}
	ok = slices.ContainsFunc(now, thread.complete)
	return ok, ok || sure
}
