package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrStop is a stop string that cannot be used.
var ErrStop = errors.New("tokenizer: bad stop string")

// Detokenizer turns the pieces of tokens, one after the other, into text that
// may be shown at once. How the bytes are divided into pieces never changes the
// text:
//
//   - A character comes out when its last byte is there.
//   - Bytes that are no UTF-8 become U+FFFD, one for each longest part that
//     begins like a character (Unicode 3.9, "maximal subpart"), so they never
//     block what follows.
//   - Bytes at the very end that a character would have gone on from are
//     dropped: the text was cut, the model made nothing invalid.
//   - The text ends where the first stop string is complete; of several that
//     end there, the longest counts. Nothing of it comes out.
//   - Text that may begin a stop is held back, never more than that.
//
// It is for one stream and one goroutine.
type Detokenizer struct {
	stops   [][]byte
	bytes   []byte // an unfinished character, at most 3 bytes
	held    []byte // whole characters that may begin a stop
	stopped bool
}

// NewDetokenizer makes a Detokenizer that ends the text before any of stops. An
// empty stop or one that is not UTF-8 is ErrStop.
func NewDetokenizer(stops []string) (*Detokenizer, error) {
	d := &Detokenizer{}
	for i, s := range stops {
		if s == "" {
			return nil, fmt.Errorf("%w: number %d is empty", ErrStop, i)
		}
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("%w: number %d (%q) is not UTF-8", ErrStop, i, s)
		}
		d.stops = append(d.stops, []byte(s))
	}
	return d, nil
}

// Push takes the bytes of the next token and returns the text that is certain
// now. stopped is true from the piece on that completes a stop string; then
// nothing more comes.
func (d *Detokenizer) Push(piece []byte) (text string, stopped bool) {
	out, stopped := d.Append(nil, piece)
	return string(out), stopped
}

// Append is Push for a caller that has room for the text: it appends it to dst.
func (d *Detokenizer) Append(dst, piece []byte) (text []byte, stopped bool) {
	if d.stopped {
		return dst, true
	}
	d.bytes = append(d.bytes, piece...)
	read := 0
	for read < len(d.bytes) && utf8.FullRune(d.bytes[read:]) {
		r, n := utf8.DecodeRune(d.bytes[read:])
		if r == utf8.RuneError && n == 1 {
			n = invalid(d.bytes[read:])
		}
		read += n
		d.held = utf8.AppendRune(d.held, r)
		if n := d.completed(); n > 0 {
			d.stopped = true
			return append(dst, d.held[:len(d.held)-n]...), true
		}
	}
	d.bytes = append(d.bytes[:0], d.bytes[read:]...)
	keep := d.possible()
	dst = append(dst, d.held[:len(d.held)-keep]...)
	d.held = append(d.held[:0], d.held[len(d.held)-keep:]...)
	return dst, false
}

// Flush ends the stream and returns what was held back.
func (d *Detokenizer) Flush() string {
	if d.stopped {
		return ""
	}
	d.stopped = true
	return string(d.held)
}

// invalid is the length of the longest part of b, at least a byte, that begins
// like a character although none is there.
func invalid(b []byte) int {
	n := 1
	for n < len(b) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}

// completed is the length of the longest stop that the held text ends with, 0
// if with none.
func (d *Detokenizer) completed() int {
	longest := 0
	for _, s := range d.stops {
		if len(s) > longest && bytes.HasSuffix(d.held, s) {
			longest = len(s)
		}
	}
	return longest
}

// possible is the length of the longest end of the held text that begins a
// stop.
func (d *Detokenizer) possible() int {
	keep := 0
	for _, s := range d.stops {
		for n := min(len(s)-1, len(d.held)); n > keep; n-- {
			if bytes.HasSuffix(d.held, s[:n]) {
				keep = n
			}
		}
	}
	return keep
}
