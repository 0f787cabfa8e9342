package httpapi

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"ragd/internal/answer"
	"ragd/telemetry"
)

// schemas are the components of the document, made from the Go types that are sent
// and read, so that they cannot differ from them.
type schemas object

// special are the types that encode themselves.
var special = map[reflect.Type]object{
	reflect.TypeFor[time.Time]():           {"type": "string", "format": "date-time"},
	reflect.TypeFor[json.RawMessage]():     {},
	reflect.TypeFor[answer.Values]():       textOrTexts(),
	reflect.TypeFor[stringOrList]():        textOrTexts(),
	reflect.TypeFor[textList]():            textOrTexts(),
	reflect.TypeFor[contentText]():         {"oneOf": []any{object{"type": "string"}, object{"type": "null"}, object{"type": "array", "items": object{"type": "object"}}}},
	reflect.TypeFor[telemetry.Timings]():   milliseconds(),
	reflect.TypeFor[[]byte]():              {"type": "string"},
	reflect.TypeFor[map[string]struct{}](): {"type": "object"},
}

func textOrTexts() object {
	return object{"oneOf": []any{object{"type": "string"}, object{"type": "array", "items": object{"type": "string"}}}}
}

// milliseconds asks the timings themselves for their names.
func milliseconds() object {
	props := object{}
	var names map[string]any
	data, err := json.Marshal(telemetry.Timings{})
	if err == nil {
		err = json.Unmarshal(data, &names)
	}
	if err != nil {
		return object{"type": "object"}
	}
	for name := range names {
		props[name] = object{"type": []string{"number", "null"}}
	}
	return object{"type": "object", "properties": props}
}

// of is the schema of a type; structs become components.
func (s schemas) of(t reflect.Type) object {
	if sp, ok := special[t]; ok {
		return sp
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Interface:
		return object{}
	case reflect.Struct:
		return s.structure(t)
	}
	return object{"type": "integer"}
}

func (s schemas) structure(t reflect.Type) object {
	if marshals(t) {
		return object{}
	}
	if t.Name() == "" {
		return object{"type": "object", "properties": s.fields(t, object{})}
	}
	name := componentName(t)
	ref := object{"$ref": "#/components/schemas/" + name}
	if _, known := s[name]; known {
		return ref
	}
	schema := object{"type": "object"}
	s[name] = schema // before its fields, which may hold it
	schema["properties"] = s.fields(t, object{})
	return ref
}

// marshals reports a type that writes itself otherwise than by its fields.
func marshals(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
}

// componentName tells types of one name in two packages apart.
func componentName(t reflect.Type) string {
	path := t.PkgPath()
	pkg := path[strings.LastIndex(path, "/")+1:]
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if slices.Contains([]string{"httpapi", "answer"}, pkg) {
		return name
	}
	return strings.ToUpper(pkg[:1]) + pkg[1:] + name
}

// fields are the properties of a struct, those of embedded ones included.
func (s schemas) fields(t reflect.Type, into object) object {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct:
			s.fields(f.Type, into)
		case !f.IsExported() || tag == "-":
		case tag == "":
			into[f.Name] = s.of(f.Type)
		default:
			into[tag] = s.of(f.Type)
		}
	}
	return into
}
