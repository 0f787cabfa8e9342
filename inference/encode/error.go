package encode

import (
	"errors"
	"fmt"
)

// ErrClosed says that the encoder was closed before the call.
var ErrClosed = errors.New("encoder is closed")

// What can be wrong with one text; see TextError.
var (
	ErrBlank     = errors.New("nothing to encode")
	ErrTooLong   = errors.New("text is too long for the model")
	ErrNotFinite = errors.New("the model gave a vector that is no number")
)

// ErrNoHead says that a model cannot score pairs: it has no classification head
// with one output.
var ErrNoHead = errors.New("the model is no reranker")

// TextError says which text of a call could not be encoded and why.
type TextError struct {
	// Index is the text's place in the call.
	Index int
	// Tokens is what the text has, with prefix and special tokens, and Max what
	// the model takes.
	Tokens, Max int
	// Err is ErrBlank, ErrTooLong or ErrNotFinite.
	Err error
}

// Error names text, fault and, for a long one, by how much.
func (e *TextError) Error() string {
	if errors.Is(e.Err, ErrTooLong) {
		return fmt.Sprintf("text %d: %v: %d tokens, %d more than the %d it takes", e.Index, e.Err, e.Tokens, e.Tokens-e.Max, e.Max)
	}
	return fmt.Sprintf("text %d: %v", e.Index, e.Err)
}

// Unwrap returns the fault.
func (e *TextError) Unwrap() error { return e.Err }
