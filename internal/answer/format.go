package answer

import (
	"encoding/json"
	"fmt"
)

// Forms of an answer.
const (
	FormatText       = "text"
	FormatJSONObject = "json_object" // any JSON object
	FormatJSONSchema = "json_schema" // JSON that a schema describes
)

// MaxSchemaBytes bounds a JSON schema.
const MaxSchemaBytes = 64 << 10

// ResponseFormat constrains the answer's form, as OpenAI's field of that name does.
type ResponseFormat struct {
	Type       string      `json:"type"`
	JSONSchema *JSONSchema `json:"json_schema,omitempty"`
}

// JSONSchema is a schema with OpenAI's fields around it. Name and Description are
// the caller's; Strict changes nothing: the answer always follows the schema.
type JSONSchema struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
	Schema      json.RawMessage `json:"schema"`
}

// constrained reports a form that not every text has.
func (f *ResponseFormat) constrained() bool { return f != nil && f.Type != FormatText }

func (f *ResponseFormat) validate() error {
	if f == nil {
		return nil
	}
	switch f.Type {
	case FormatText, FormatJSONObject:
		if f.JSONSchema != nil {
			return invalid("response_format.json_schema", fmt.Sprintf("is given, but type is %s", f.Type))
		}
		return nil
	case FormatJSONSchema:
	default:
		return invalid("response_format.type", fmt.Sprintf("%q is not text, json_object or json_schema", f.Type))
	}
	switch {
	case f.JSONSchema == nil || len(f.JSONSchema.Schema) == 0:
		return invalid("response_format.json_schema.schema", "is missing")
	case len(f.JSONSchema.Schema) > MaxSchemaBytes:
		return invalid("response_format.json_schema.schema", fmt.Sprintf("%d bytes, at most %d are allowed", len(f.JSONSchema.Schema), MaxSchemaBytes))
	}
	return nil
}

// checkFormat asks the generator before anything else is done.
func (s *Service) checkFormat(f *ResponseFormat) error {
	if !f.constrained() {
		return nil
	}
	return s.Generator.CheckFormat(*f)
}
