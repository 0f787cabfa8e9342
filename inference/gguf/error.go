package gguf

import "fmt"

// FormatError says what is wrong with a model file and where.
type FormatError struct {
	// Path is the file as it was given to Open.
	Path string
	// Place is the part of the file: "header", a metadata key, a tensor.
	Place string
	// Needs is the size that the file must have at the least for this part and
	// Has what it has, in bytes; both are zero when length is not the fault.
	Needs, Has int64
	// Reason says what is wrong when length is not the fault.
	Reason string
	// Err is the cause, if there is one.
	Err error
}

// Error names file, place and fault.
func (e *FormatError) Error() string {
	switch {
	case e.Needs > 0:
		return fmt.Sprintf("%s: %s: file is cut short: needs %d bytes, has %d", e.Path, e.Place, e.Needs, e.Has)
	case e.Err != nil:
		return fmt.Sprintf("%s: %s: %v", e.Path, e.Place, e.Err)
	}
	return fmt.Sprintf("%s: %s: %s", e.Path, e.Place, e.Reason)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }
