package sample

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// compiler turns a schema's JSON into nodes.
type compiler struct {
	doc       *document
	nodes     []*node
	refs      map[string]*node
	exclusive []oneOf
	anything  *node
}

// annotations say nothing about which values are valid.
var annotations = []string{
	"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment", "$defs", "definitions",
}

// understood are the keywords that say something and are supported.
var understood = []string{
	"type", "enum", "const", "properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems", "uniqueItems",
	"minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "anyOf", "oneOf", "allOf", "$ref",
}

// members are an object's, in order.
type members []member

type member struct {
	key   string
	value json.RawMessage
}

func (m members) get(key string) json.RawMessage {
	for _, x := range m {
		if x.key == key {
			return x.value
		}
	}
	return nil
}

// without are the members but some, and but annotations.
func (m members) without(keys ...string) members {
	return slices.DeleteFunc(slices.Clone(m), func(x member) bool {
		return slices.Contains(keys, x.key) || slices.Contains(annotations, x.key)
	})
}

func parseMembers(data []byte) (members, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%.40s is not an object", data)
	}
	var out members
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: t.(string)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		if seen[m.key] {
			return nil, fmt.Errorf("%q stands there twice", m.key)
		}
		seen[m.key] = true
		out = append(out, m)
	}
	return out, nil
}

func (c *compiler) add(n node) *node {
	c.nodes = append(c.nodes, &n)
	return &n
}

func escapePointer(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// ref is the node of a pointer into the document. It is there before what it
// points to was read, so that schemas may refer to themselves.
func (c *compiler) ref(pointer, path string) (*node, error) {
	if n := c.refs[pointer]; n != nil {
		return n, nil
	}
	raw, err := c.find(pointer)
	if err != nil {
		return nil, &SchemaError{path, err.Error()}
	}
	n := c.add(node{kind: kindUnion})
	c.refs[pointer] = n
	inner, err := c.schema(raw, strings.TrimPrefix(pointer, "#"))
	if err != nil {
		return nil, err
	}
	n.any = []*node{inner}
	return n, nil
}

func (c *compiler) find(pointer string) (json.RawMessage, error) {
	rest, ok := strings.CutPrefix(pointer, "#")
	if !ok || rest != "" && rest[0] != '/' {
		return nil, fmt.Errorf(`"$ref" %q: only pointers into the same schema ("#/$defs/…") are supported`, pointer)
	}
	raw, at := json.RawMessage(c.doc.raw), ""
	if rest == "" {
		return raw, nil
	}
	rest, err := url.PathUnescape(rest)
	if err != nil {
		return nil, fmt.Errorf(`"$ref" %q: %w`, pointer, err)
	}
	for _, step := range strings.Split(rest[1:], "/") {
		m, err := c.doc.members(at, raw)
		if errors.Is(err, errRead) {
			return nil, err
		}
		if err != nil {
			return nil, fmt.Errorf(`"$ref" %q points nowhere`, pointer)
		}
		at += "/" + step
		if raw = m.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(step)); raw == nil {
			return nil, fmt.Errorf(`"$ref" %q points nowhere`, pointer)
		}
	}
	return raw, nil
}

// schema compiles one.
func (c *compiler) schema(raw json.RawMessage, path string) (*node, error) {
	if err := c.doc.enter(len(raw)); err != nil {
		return nil, &SchemaError{path, err.Error()}
	}
	defer c.doc.leave()
	switch string(bytes.TrimSpace(raw)) {
	case "true":
		return c.whatever(), nil
	case "false":
		return c.add(node{kind: kindUnion}), nil
	}
	m, err := parseMembers(raw)
	if err != nil {
		return nil, &SchemaError{path, err.Error()}
	}
	for _, x := range m {
		if !slices.Contains(annotations, x.key) && !slices.Contains(understood, x.key) {
			return nil, &SchemaError{path, fmt.Sprintf("keyword %q is not supported", x.key)}
		}
		if x.key == "$id" && path != "" {
			// Pointers inside would be into this schema.
			return nil, &SchemaError{path, `keyword "$id" is supported at the root only`}
		}
	}
	return c.members(m.without(), path)
}

// members compiles a schema of known keywords, annotations left out.
func (c *compiler) members(m members, path string) (*node, error) {
	for _, key := range []string{"const", "enum"} {
		if raw := m.get(key); raw != nil {
			return c.words(key, raw, m.without(key), path)
		}
	}
	for _, key := range []string{"$ref", "anyOf", "oneOf", "allOf"} {
		raw := m.get(key)
		if raw == nil {
			continue
		}
		if rest := m.without(key); len(rest) > 0 {
			return nil, &SchemaError{path, fmt.Sprintf("keyword %q is not supported beside %q", key, rest[0].key)}
		}
		if key == "$ref" {
			var pointer string
			if json.Unmarshal(raw, &pointer) != nil {
				return nil, &SchemaError{path, `"$ref" must be a string`}
			}
			return c.ref(pointer, path)
		}
		return c.combined(key, raw, path)
	}
	return c.typed(m, path)
}

// combined is anyOf, oneOf or allOf.
func (c *compiler) combined(key string, raw json.RawMessage, path string) (*node, error) {
	list, err := c.list(key, raw, path)
	if err != nil {
		return nil, err
	}
	switch {
	case len(list) == 0:
		return nil, &SchemaError{path, fmt.Sprintf("%q is empty", key)}
	case key == "allOf" && len(list) > 1:
		return nil, &SchemaError{path, `keyword "allOf" is supported with one schema only`}
	case key == "oneOf":
		c.exclusive = append(c.exclusive, oneOf{path, list})
	}
	return c.add(node{kind: kindUnion, any: list}), nil
}

func (c *compiler) list(key string, raw json.RawMessage, path string) ([]*node, error) {
	var schemas []json.RawMessage
	if json.Unmarshal(raw, &schemas) != nil {
		return nil, &SchemaError{path, fmt.Sprintf("%q must be a list", key)}
	}
	out := make([]*node, len(schemas))
	var err error
	for i, s := range schemas {
		if out[i], err = c.schema(s, fmt.Sprintf("%s/%s/%d", path, key, i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// words is const or enum: those of its values that the rest of the schema allows.
func (c *compiler) words(key string, raw json.RawMessage, rest members, path string) (*node, error) {
	values := []json.RawMessage{raw}
	if key == "enum" && json.Unmarshal(raw, &values) != nil {
		return nil, &SchemaError{path, `"enum" must be a list`}
	}
	n := c.add(node{kind: kindWords})
	for _, v := range values {
		text, err := canonical(v)
		if err != nil {
			return nil, &SchemaError{path, err.Error()}
		}
		n.words = append(n.words, text)
	}
	if len(rest) > 0 {
		if err := keepValid(n, rest, path, c.doc); err != nil {
			return nil, err
		}
	}
	slices.Sort(n.words)
	n.words = slices.Compact(n.words)
	return n, nil
}

// keepValid drops the words that the rest of their schema does not allow.
func keepValid(n *node, rest members, path string, doc *document) error {
	c := &compiler{doc: doc, refs: map[string]*node{}}
	other, err := c.members(rest, path)
	if err != nil {
		return err
	}
	if err := c.finish(); err != nil {
		return err
	}
	n.words = slices.DeleteFunc(n.words, func(w string) bool { return !other.accepts(w) })
	if len(n.words) == 0 {
		return &SchemaError{path, `no value of "enum" or "const" is valid beside the other keywords`}
	}
	return nil
}

// canonical is a value without white space and needless escapes.
func canonical(v json.RawMessage) (string, error) {
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	var x any
	if err := dec.Decode(&x); err != nil {
		return "", err
	}
	return encoded(x)
}

func encoded(x any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(x); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}
