package sample

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// schemaVocabulary is every byte, some longer pieces, and an end.
func schemaVocabulary() (v *Vocabulary, piece func(int32) []byte, end int32) {
	var pieces [][]byte
	for b := range 256 {
		pieces = append(pieces, []byte{byte(b)})
	}
	for _, s := range []string{
		`{"`, `":`, `": "`, `",`, `"}`, `"]`, `[{`, `}]`, `]}`, `},`, `null`, `true,`, `false`, ` "`, "\n  ", "가", "나다", "ab", `a"`, `":[`, `,"`, "12", "0.", "-1", `\u00`, `\n`,
	} {
		pieces = append(pieces, []byte(s))
	}
	piece = func(id int32) []byte {
		if int(id) >= len(pieces) {
			return nil
		}
		return pieces[id]
	}
	end = int32(len(pieces))
	return NewVocabulary(len(pieces)+1, piece, []int32{end}), piece, end
}

// write draws tokens at random among the allowed ones, with a liking for those
// that finish things, and returns the text and whether it came to its end.
func write(t interface{ Fatalf(string, ...any) }, g Grammar, piece func(int32) []byte, end int32, rng *rand.Rand, most int) (string, bool) {
	var text []byte
	logits := make([]float32, end+1)
	for range most {
		for i := range logits {
			logits[i] = rng.Float32()
			if p := piece(int32(i)); len(p) > 0 && bytes.ContainsAny(p, "\"}]:") {
				logits[i] += rng.Float32()
			}
			if p := piece(int32(i)); len(p) == 1 && bytes.ContainsAny(p, " \n\t\r\\") {
				logits[i] -= rng.Float32()
			}
		}
		logits[end]++
		g.Mask(logits)
		best, err := argmax(logits)
		if err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
		if best == end {
			return string(text), true
		}
		text = append(text, piece(best)...)
		g.Accept(best)
	}
	return string(text), false
}

func validator(t interface{ Fatalf(string, ...any) }, schema string) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", doc); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	v, err := c.Compile("s.json")
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return v
}

// valid fails the test unless text is JSON and the schema's.
func valid(t interface{ Fatalf(string, ...any) }, v *jsonschema.Schema, schema, text string) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%s\n%q: %v", schema, text, err)
	}
	if err := v.Validate(doc); err != nil {
		t.Fatalf("%s\n%q: %v", schema, text, err)
	}
}

// Random schemas: whatever is drawn parses and validates, by a validator that
// knows nothing of the grammar.
func TestRandomSchemas(t *testing.T) {
	vocab, piece, end := schemaVocabulary()
	finished := 0
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(drawSchema(t, 3))
		if err != nil {
			t.Fatal(err)
		}
		s, err := ParseSchema(raw)
		var bad *SchemaError
		if errors.As(err, &bad) {
			if !strings.Contains(bad.Reason, "no ") && !strings.Contains(bad.Reason, "use \"anyOf\"") {
				t.Fatalf("%s: %v", raw, err)
			}
			return // nothing satisfies it, or perhaps two alternatives at once
		}
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		v := validator(t, string(raw))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for range 4 {
			text, ended := write(t, NewSchemaGrammar(vocab, piece, s), piece, end, rng, 3000)
			if ended {
				finished++
				valid(t, v, string(raw), text)
			}
		}
	})
	if finished < 100 {
		t.Errorf("only %d texts came to their end", finished)
	}
}

type object = map[string]any

func drawSchema(t *rapid.T, depth int) any {
	kinds := []string{"string", "integer", "number", "boolean", "null", "enum", "const", "types"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "array", "array", "anyOf", "oneOf", "free", "any", "tuple", "held")
	}
	switch k := rapid.SampledFrom(kinds).Draw(t, "kind"); k {
	case "string":
		s := object{"type": k}
		if rapid.Bool().Draw(t, "bounded") {
			s["minLength"] = rapid.IntRange(0, 5).Draw(t, "min")
			s["maxLength"] = rapid.IntRange(3, 9).Draw(t, "max")
		}
		return s
	case "integer", "number":
		return drawNumber(t, k)
	case "enum":
		return object{"enum": rapid.SliceOfN(rapid.SampledFrom([]any{"a", "ab", "가나", "q\"\\", 1, 12, -3.5, true, nil, object{"x": 1}}), 1, 4).Draw(t, "values")}
	case "const":
		return object{"const": rapid.SampledFrom([]any{"only", 7, false, "한 줄\n"}).Draw(t, "value")}
	case "types":
		return object{"type": rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"string", "integer", "boolean", "null", "array", "object"}), 1, 3, rapid.ID).Draw(t, "types"), "maxLength": 4}
	case "object":
		return drawObject(t, depth)
	case "array":
		s := object{"type": k, "items": drawSchema(t, depth-1)}
		if rapid.Bool().Draw(t, "bounded") {
			s["minItems"] = rapid.IntRange(0, 3).Draw(t, "min")
			s["maxItems"] = rapid.IntRange(2, 4).Draw(t, "max")
		}
		return s
	case "tuple":
		return object{"type": "array", "prefixItems": []any{drawSchema(t, depth-1), drawSchema(t, depth-1)}, "items": rapid.Bool().Draw(t, "more"), "minItems": rapid.IntRange(0, 2).Draw(t, "min")}
	case "anyOf":
		return object{"anyOf": []any{drawSchema(t, depth-1), drawSchema(t, depth-1), drawSchema(t, depth-1)}}
	case "oneOf":
		return object{"oneOf": []any{drawSchema(t, depth-1), drawSchema(t, depth-1)}}
	case "held":
		s, ok := drawSchema(t, depth-1).(object)
		if !ok || s["const"] != nil {
			return true
		}
		s["enum"] = rapid.SliceOfN(rapid.SampledFrom([]any{"a", "ab", "가나", 1, 12, 3.5, true, nil, object{"a": 1}, object{}, []any{}, []any{1, "ab"}}), 2, 8).Draw(t, "values")
		return s
	case "free":
		return object{"type": "object", "additionalProperties": drawSchema(t, depth-1)}
	}
	return true
}

func drawNumber(t *rapid.T, kind string) any {
	s := object{"type": kind}
	n := rapid.Float64Range(-2000, 2000).Draw(t, "bound")
	if kind == "integer" || rapid.Bool().Draw(t, "whole") {
		n = math.Trunc(n)
	}
	switch rapid.IntRange(0, 5).Draw(t, "bounds") {
	case 1:
		s["minimum"] = n
	case 2:
		s["exclusiveMaximum"] = n
	case 3:
		s["minimum"], s["maximum"] = n, n+1
	case 4:
		s["exclusiveMinimum"], s["maximum"] = n, n+rapid.Float64Range(1, 1e6).Draw(t, "span")
	}
	return s
}

func drawObject(t *rapid.T, depth int) any {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "ab", "이름", "b c", "\"", "n\\"}), 0, 4, rapid.ID).Draw(t, "names")
	props, required := object{}, []string{}
	for _, n := range names {
		props[n] = drawSchema(t, depth-1)
		if rapid.Bool().Draw(t, "required") {
			required = append(required, n)
		}
	}
	s := object{"type": "object", "properties": props, "required": required}
	if rapid.Bool().Draw(t, "closed") {
		s["additionalProperties"] = false
	}
	return s
}

// What a schema allows and forbids, text by text.
func TestSchemaTexts(t *testing.T) {
	tree := `{"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"]}},"$ref":"#/$defs/tree"}`
	for _, c := range []struct {
		schema  string
		yes, no []string
	}{
		{`{"type":"integer","minimum":3,"maximum":17}`, []string{"3", "17", "10"}, []string{"2", "18", "-3", "3.0", "03", "170"}},
		{`{"type":"integer","exclusiveMinimum":-2,"maximum":0}`, []string{"0", "-1"}, []string{"-2", "1"}},
		{`{"type":"number","minimum":0,"maximum":1}`, []string{"0", "1", "0.5", "1.0", "0.000001"}, []string{"1.000001", "-0.1", "2", "0.0000001", "1e0"}},
		{`{"type":"number"}`, []string{"-12.5e-3", "0", "1E+10"}, []string{".5", "1.", "1e999", "00"}},
		{`{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"가나다"`, `"\u00e9\n"`}, []string{`"a"`, `"abcd"`, `"\ud800x"`, `"a`}},
		{`{"enum":["a","ab",1,12,null]}`, []string{`"a"`, `"ab"`, "1", "12", "null"}, []string{`"b"`, "2", "120", "nul"}},
		{`{"enum":["a","abc",7],"type":"string","maxLength":2}`, []string{`"a"`}, []string{`"abc"`, "7"}},
		{
			`{"properties":{"b":{"const":1},"a":{"const":2}},"required":["a"],"type":"object"}`,
			[]string{`{"b":1,"a":2}`, `{"a":2}`, "{ \"b\" : 1 ,\n\"a\":2 }"},
			[]string{`{"b":1}`, `{"a":2,"b":1}`, `{}`, `{"a":2,}`, `{"a":2,"c":0}`},
		},
		{`{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2}`, []string{"[true]", "[true, false]"}, []string{"[]", "[true,true,true]", "[1]", "[true,]"}},
		{`{"type":"array","prefixItems":[{"const":1}],"items":false}`, []string{"[]", "[1]"}, []string{"[1,1]", "[2]"}},
		{`{"type":["string","null"]}`, []string{`"x"`, "null"}, []string{"1", "true"}},
		{`{"required":["x"],"type":"object","additionalProperties":{"type":"integer"}}`, []string{`{"x":1}`}, []string{`{}`, `{"x":"1"}`}},
		{tree, []string{`{"v":1}`, `{"v":1,"kids":[{"v":2,"kids":[]},{"v":3}]}`}, []string{`{"kids":[]}`, `{"v":1,"kids":[1]}`}},
		{
			`{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"integer"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]},{"type":"string"}]}`,
			[]string{`{"k":"a","n":1}`, `{"k":"b"}`, `"s"`},
			[]string{`{"k":"c"}`, `{"k":"b","n":1}`},
		},
		{`{"allOf":[{"type":"boolean"}]}`, []string{"true"}, []string{"1"}},
		{`true`, []string{`{"a":[1,{"b":null}]}`, "1", `""`}, []string{"{", "tru"}},
	} {
		s, err := ParseSchema([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		v := validator(t, c.schema)
		for _, text := range c.yes {
			if !s.root.accepts(text) {
				t.Errorf("%s does not accept %s", c.schema, text)
			}
			valid(t, v, c.schema, text)
		}
		for _, text := range c.no {
			if s.root.accepts(text) {
				t.Errorf("%s accepts %s", c.schema, text)
			}
		}
	}
}

func TestRefusedSchemas(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","pattern":"a+"}`:                            `keyword "pattern" is not supported`,
		`{"properties":{"a":{"format":"date"}}}`:                      `at "#/properties/a": keyword "format"`,
		`{"not":{}}`:                                                  `"not"`,
		`{"type":"array","uniqueItems":true}`:                         `"uniqueItems"`,
		`{"type":"number","multipleOf":2}`:                            `"multipleOf"`,
		`{"anyOf":[{"type":"string"}],"minLength":1}`:                 `"anyOf" is not supported beside "minLength"`,
		`{"oneOf":[{"type":"number"},{"type":"integer"}]}`:            `"oneOf"`,
		`{"enum":[1],"oneOf":[{"type":"number"},{"type":"integer"}]}`: `"oneOf"`,
		`{"allOf":[{},{}]}`:                                           `"allOf"`,
		`{"$ref":"http://x/y"}`:                                       "pointers into the same schema",
		`{"$defs":{"a":{"$id":"a","$defs":{"b":{"const":1}},"$ref":"#/$defs/b"},"b":{"const":2}},"$ref":"#/$defs/a"}`: `"$id" is supported at the root only`,
		`{"$ref":"#/$defs/none"}`: "points nowhere",
		`{"$ref":"#"}`:            "no value",
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`:              "no value",
		`{"type":"integer","minimum":1.2,"maximum":1.8}`:                                  "no number",
		`{"type":"string","minLength":-1}`:                                                `"minLength"`,
		`{"type":"text"}`:                                                                 `"text"`,
		`{"enum":["a"],"type":"integer"}`:                                                 "no value of",
		`{"type":"object","properties":{},"required":["x"],"additionalProperties":false}`: "no value",
		`[]`:    "not an object",
		`{"a":`: "not JSON",
		`{"type":"object","properties":{"a":{},"a":{}}}`: "twice",
		`false`: "no value",
	} {
		_, err := ParseSchema([]byte(schema))
		var bad *SchemaError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
}

func FuzzParseSchema(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":["integer","null"],"minimum":1}},"required":["a"]}`, `{"$ref":"#"}`, `{"enum":[1,"a"]}`, `true`,
		`{"$defs":{"x":{"anyOf":[{"type":"number","exclusiveMaximum":0.5},{"type":"array","items":{"$ref":"#/$defs/x"},"maxItems":3}]}},"$ref":"#/$defs/x"}`,
		`{"type":"array","prefixItems":[{"const":"a"},true],"items":false,"minItems":1}`, `{"enum":["ab",2,[1]],"type":["string","array"],"maxLength":3}`,
		`{"oneOf":[{"type":"string","minLength":2},{"type":"null"}]}`, `{"type":"object","additionalProperties":{"type":"boolean"},"required":["\u0001"]}`,
	} {
		f.Add(s, uint64(1))
	}
	vocab, piece, end := schemaVocabulary()
	f.Fuzz(func(t *testing.T, raw string, seed uint64) {
		s, err := ParseSchema([]byte(raw))
		if err != nil {
			return
		}
		text, ended := write(t, NewSchemaGrammar(vocab, piece, s), piece, end, rand.New(rand.NewPCG(seed, 1)), 300)
		if !ended {
			return
		}
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s: %q is no JSON", raw, text)
		}
		if v := lenientValidator(raw); v != nil {
			valid(t, v, raw, text)
		}
	})
}

// lenientValidator is nil for a schema that the validator refuses, such as one with an
// enum that is empty.
func lenientValidator(schema string) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", doc); err != nil {
		return nil
	}
	v, err := c.Compile("s.json")
	if err != nil {
		return nil
	}
	return v
}

func ExampleParseSchema() {
	_, err := ParseSchema([]byte(`{"type": "object", "properties": {"day": {"type": "string", "pattern": "^[a-z]+$"}}}`))
	fmt.Println(err)
	// Output: at "#/properties/day": keyword "pattern" is not supported
}

func BenchmarkSchemaMask(b *testing.B) {
	vocab, piece, _ := schemaVocabulary()
	s, err := ParseSchema([]byte(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"]}`))
	if err != nil {
		b.Fatal(err)
	}
	g := NewSchemaGrammar(vocab, piece, s)
	logits := make([]float32, vocab.size)
	for b.Loop() {
		g.Mask(logits)
	}
}
