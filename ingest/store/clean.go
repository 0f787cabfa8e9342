package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ragd/ingest"
)

// maxPath keeps a path below what an index entry can hold (2,704 bytes).
const maxPath = 2000

// clean makes a string fit for PostgreSQL, which takes neither U+0000 nor
// invalid UTF-8. The length in bytes stays, so that spans into it stay right.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	b := []byte(s)
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b[i] = '?'
		case r == 0:
			b[i] = ' '
		}
		i += size
	}
	return string(b)
}

func cleanAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = clean(s)
	}
	return out
}

// cleanMetadata makes every value a string or a list of strings, which is what
// the filters compare.
func cleanMetadata(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if v, ok := metadataValue(m[key]); ok {
			out[clean(key)] = v
		}
	}
	return out
}

func metadataValue(v any) (any, bool) {
	switch v := v.(type) {
	case nil:
		return nil, false
	case string:
		return clean(v), true
	case []string:
		return cleanAll(v), true
	case []any:
		list := make([]string, 0, len(v))
		for _, e := range v {
			if e != nil {
				list = append(list, clean(fmt.Sprint(e)))
			}
		}
		return list, true
	default:
		return clean(fmt.Sprint(v)), true
	}
}

// validate refuses what can never be stored and names the part at fault.
func validate(e *ingest.Encoded) error {
	path := e.Document.Path
	switch {
	case path == "":
		return fmt.Errorf("%w: it has no path", ErrInvalid)
	case path != clean(path):
		return fmt.Errorf("%w: path %q holds a zero byte or invalid UTF-8", ErrInvalid, path)
	case len(path) > maxPath:
		return fmt.Errorf("%w: path of %d bytes is longer than %d: %.60q…", ErrInvalid, len(path), maxPath, path)
	case len(e.Vectors) != len(e.Chunks):
		return fmt.Errorf("%w: %s: %d chunks but %d vectors", ErrInvalid, path, len(e.Chunks), len(e.Vectors))
	case e.Sentences != nil && len(e.Sentences) != len(e.Chunks):
		return fmt.Errorf("%w: %s: %d chunks but sentence vectors of %d", ErrInvalid, path, len(e.Chunks), len(e.Sentences))
	case e.States != nil && len(e.States) != len(e.Chunks):
		return fmt.Errorf("%w: %s: %d chunks but token states of %d", ErrInvalid, path, len(e.Chunks), len(e.States))
	}
	for i := range e.Chunks {
		if err := validateChunk(e, i); err != nil {
			return fmt.Errorf("%w: %s, chunk %d: %w", ErrInvalid, path, i, err)
		}
	}
	return nil
}

func validateChunk(e *ingest.Encoded, i int) error {
	if err := validateVector(e.Vectors[i], len(e.Vectors[0])); err != nil {
		return err
	}
	if e.States != nil {
		if err := validateStates(e.States[i], len(e.Vectors[0])); err != nil {
			return err
		}
	}
	if e.Sentences == nil {
		return nil
	}
	if got, want := len(e.Sentences[i]), len(e.Chunks[i].Sentences); got != want {
		return fmt.Errorf("%d sentences but %d sentence vectors", want, got)
	}
	for j, v := range e.Sentences[i] {
		if err := validateVector(v, len(e.Vectors[0])); err != nil {
			return fmt.Errorf("sentence %d: %w", j, err)
		}
	}
	return nil
}

// validateVector refuses vectors without a direction: they have no cosine, and an
// index leaves them out in silence.
func validateVector(v []float32, dim int) error {
	if len(v) != dim {
		return fmt.Errorf("vector of %d dimensions, expected %d", len(v), dim)
	}
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if !(sum > 0 && sum < 1e6) { // NaN fails too
		return fmt.Errorf("vector of squared length %g", sum)
	}
	return nil
}
