package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// decode reads one JSON object into v and refuses everything else: a body over the
// bound or that does not arrive, invalid UTF-8, unknown fields, wrong types, trailing bytes. Lone
// surrogate escapes (\ud800) become U+FFFD, as encoding/json has it.
func (s *server) decode(c *gin.Context, v any) error {
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, s.cfg.MaxBodyBytes))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return &answer.Error{Code: answer.TooLarge, Message: fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return &answer.Error{Code: answer.Invalid, Message: fmt.Sprintf("the body did not arrive within the time; %d bytes of it did", len(body))}
		}
		return &answer.Error{Code: answer.Invalid, Message: "the body could not be read", Err: err}
	}
	arrived(c)
	if !utf8.Valid(body) {
		return &answer.Error{Code: answer.Invalid, Message: "the body is not valid UTF-8"}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return decodeError(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return &answer.Error{Code: answer.Invalid, Message: "the body holds more than one JSON value"}
	}
	return nil
}

func decodeError(err error) error {
	var wrongType *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var known *answer.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &wrongType):
		field := wrongType.Field
		if field == "" {
			return &answer.Error{Code: answer.Invalid, Message: fmt.Sprintf("the body must be a JSON object, not %s", given(wrongType.Value))}
		}
		return &answer.Error{Code: answer.Invalid, Field: field, Message: fmt.Sprintf("%s: %s given, %s wanted", field, given(wrongType.Value), plainType(wrongType.Type.Kind().String()))}
	case errors.As(err, &syntax):
		return &answer.Error{Code: answer.Invalid, Message: fmt.Sprintf("the body is not JSON: %s at byte %d", syntax, syntax.Offset)}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &answer.Error{Code: answer.Invalid, Message: "the body is empty or cut off"}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		field := strings.Trim(name, `"`)
		return &answer.Error{Code: answer.Invalid, Field: field, Message: fmt.Sprintf("unknown field %q", field)}
	}
	return &answer.Error{Code: answer.Invalid, Message: err.Error()}
}

// given words what encoding/json calls a value: "array", "number 2.5".
func given(value string) string {
	switch value {
	case "array":
		return "a list"
	case "bool":
		return "true or false"
	case "object":
		return "an object"
	case "string", "number":
		return "a " + value
	}
	return value
}

func plainType(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "true or false"
	case kind == "slice":
		return "a list"
	case kind == "struct", kind == "map":
		return "an object"
	}
	return "a " + kind
}
