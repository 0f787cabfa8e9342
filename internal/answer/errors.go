package answer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"ragd/ingest"
	"ragd/retrieve"
)

// Code is the kind of an error that a caller sees.
type Code string

// The codes of DESIGN §3. The HTTP status of each is in internal/httpapi.
const (
	Invalid     Code = "invalid"
	NotFound    Code = "not_found"
	Conflict    Code = "conflict"
	TooLarge    Code = "too_large"
	OverBudget  Code = "over_budget"
	Busy        Code = "busy"
	Unavailable Code = "unavailable"
	Timeout     Code = "timeout"
	Cancelled   Code = "cancelled"
	Internal    Code = "internal"
)

// Error is what a caller may know. Err, when set, is for the log alone.
type Error struct {
	Code    Code
	Message string
	Field   string
	// RetryAfter is when to try again, for busy.
	RetryAfter time.Duration
	Err        error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

func invalid(field, reason string) *Error {
	return &Error{Code: Invalid, Field: field, Message: field + ": " + reason}
}

// noCollection says how to make the collection.
func noCollection(name string) *Error {
	return &Error{Code: NotFound, Field: "collection", Message: fmt.Sprintf("there is no collection %q yet; fill it with: %s", name, ingestCommand(name))}
}

// ingestCommand fills a collection. The name stands in quotes where a shell would
// take it apart.
func ingestCommand(collection string) string {
	if collection == "default" {
		return "ragd ingest PATH"
	}
	return "ragd ingest PATH --collection " + quoted(collection)
}

// quoted is a word for a shell.
func quoted(word string) string {
	plain := strings.IndexFunc(word, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) < 0
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// otherModel says how to bring collection and model together.
func otherModel(e *ingest.ModelError) *Error {
	return &Error{Code: Conflict, Field: "collection", Message: fmt.Sprintf(
		"the collection %q is embedded by %q, ragd is set to %q; embed it anew with: ragd reembed --collection %s, or set models.embedding to the first and start again",
		e.Collection, e.Have, e.Want, quoted(e.Collection))}
}

// AsError turns any error of the question road into one a caller may see.
func AsError(err error) *Error {
	var e *Error
	var missing *ingest.NoCollectionError
	var model *ingest.ModelError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &missing):
		return noCollection(missing.Name)
	case errors.As(err, &model):
		return otherModel(model)
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: Timeout, Message: "the request took longer than allowed", Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Code: Cancelled, Message: "the client went away", Err: err}
	case errors.Is(err, retrieve.ErrUnavailable):
		return &Error{Code: Unavailable, Message: "the database cannot be reached; try again", Err: err}
	}
	return &Error{Code: Internal, Message: "internal error", Err: fmt.Errorf("answer: %w", err)}
}
