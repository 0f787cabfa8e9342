package chat

import (
	"errors"
	"fmt"
)

// ErrLimit is returned when a template is too large or runs past its bounds.
var ErrLimit = errors.New("template exceeds its limits")

// ErrUnsupported is returned for Jinja that this subset does not have.
var ErrUnsupported = errors.New("not supported in chat templates")

// Error says where a template failed and at which construct.
type Error struct {
	Line      int
	Construct string // "for", "filter trim", "syntax", ...
	Err       error
}

func (e *Error) Error() string {
	return fmt.Sprintf("chat template line %d: %s: %v", e.Line, e.Construct, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// RaisedError is the template's own refusal (raise_exception), for example of
// roles that do not alternate.
type RaisedError struct{ Message string }

func (e *RaisedError) Error() string { return "refused by the template: " + e.Message }

// at adds a place to an error that has none yet.
func at(line int, construct string, err error) error {
	var placed *Error
	if err == nil || errors.As(err, &placed) {
		return err
	}
	return &Error{Line: line, Construct: construct, Err: err}
}
