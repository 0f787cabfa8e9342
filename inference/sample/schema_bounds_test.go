package sample

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// A schema that can nest for ever still ends: at the bound of depth only values
// that close again are allowed.
func TestSchemaDepth(t *testing.T) {
	vocab, piece, end := schemaVocabulary()
	raw := `{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["a"]}`
	s, err := ParseSchema([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	g := NewSchemaGrammar(vocab, piece, s)
	var text []byte
	logits := make([]float32, end+1)
	for range 10000 {
		for i := range logits {
			logits[i] = -float32(i)
			if p := piece(int32(i)); len(p) == 1 && p[0] == '{' {
				logits[i] = 1 // as deep as it goes
			}
			if p := piece(int32(i)); len(p) > 0 && bytes.ContainsAny(p, " \n\t\r") {
				logits[i] = -1e6
			}
		}
		g.Mask(logits)
		best, err := argmax(logits)
		if err != nil {
			t.Fatalf("after %q: %v", text, err)
		}
		if best == end {
			valid(t, validator(t, raw), raw, string(text))
			if n := strings.Count(string(text), "{"); n != maxDepth {
				t.Errorf("nested %d deep, want %d", n, maxDepth)
			}
			return
		}
		text = append(text, piece(best)...)
		g.Accept(best)
	}
	t.Fatalf("no end: %.200q", text)
}

// Whatever is preferred, a number can always be ended: no digit, point or exponent is
// let in that nothing may follow.
func TestNumbersComeToAnEnd(t *testing.T) {
	vocab, piece, end := schemaVocabulary()
	for _, schema := range []string{
		`{"type":"number"}`, `{"type":"integer"}`, `{"type":"number","minimum":-5}`, `{"type":"integer","maximum":7}`,
		`{"type":"number","minimum":0.000001,"maximum":0.5}`, `{"type":"number","exclusiveMaximum":-0.1}`,
	} {
		s, err := ParseSchema([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		for _, wish := range []string{"9.", "0.", "-9.", "-0.9", "9.e", "9e+", "1.", "-1e-", "09", "50."} {
			g, text := NewSchemaGrammar(vocab, piece, s), ""
			for len(text) < 60 {
				next := preferred(g, piece, end, wish)
				if next == 0 {
					t.Fatalf("%s: nothing may follow %q", schema, text)
				}
				if next == '$' {
					break
				}
				text += string(next)
				g.Accept(int32(next))
			}
			valid(t, validator(t, schema), schema, text)
		}
	}
}

// preferred is the first byte of wish that may come next, else the end ('$') or another
// byte of a number; 0 when nothing may come.
func preferred(g Grammar, piece func(int32) []byte, end int32, wish string) byte {
	logits := make([]float32, end+1)
	g.Mask(logits)
	may := func(id int32) bool { return logits[id] == 0 }
	for i := range len(wish) {
		if may(int32(wish[i])) {
			return wish[i]
		}
	}
	if may(end) {
		return '$'
	}
	for id := range end {
		if p := piece(id); may(id) && len(p) == 1 && strings.IndexByte(" \n\t\r", p[0]) < 0 {
			return p[0]
		}
	}
	return 0
}

// Schemas that lead back to themselves beside an enum, or to each other so often that
// reading them would take for ever, are refused.
func TestSchemaWithoutEnd(t *testing.T) {
	// Each of these reads all those behind it, so that the first takes 2^n readings.
	defs, refs := map[string]any{}, []any{}
	for i := 39; i >= 0; i-- {
		defs[fmt.Sprint("d", i)] = object{"enum": []any{1}, "anyOf": append([]any{object{"type": "number"}}, refs...)}
		refs = append(refs, object{"$ref": fmt.Sprint("#/$defs/d", i)})
	}
	doubling, err := json.Marshal(object{"$defs": defs, "$ref": "#/$defs/d0"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ schema, want string }{
		"const":    {`{"const":1,"$ref":"#"}`, "leads back"},
		"enum":     {`{"$defs":{"a":{"enum":[[1]],"items":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`, "leads back"},
		"two":      {`{"$defs":{"a":{"const":1,"$ref":"#/$defs/b"},"b":{"enum":[1],"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, "leads back"},
		"nested":   {strings.Repeat(`{"items":`, 5000) + "{}" + strings.Repeat("}", 5000), "nest more than 256"},
		"doubling": {string(doubling), "takes too long to read"},
		"pointer":  {`{"$ref":"#/$defs` + strings.Repeat("/a", 8000) + `","$defs":` + strings.Repeat(`{"a":`, 8000) + "{}" + strings.Repeat("}", 8000) + "}", "takes too long to read"},
	} {
		_, err := ParseSchema([]byte(c.schema))
		var bad *SchemaError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Where two alternatives read the same text, a position is kept once, not once for each
// way there: of n items 2^n.
func TestAlternativesDoNotMultiply(t *testing.T) {
	const either = `{"anyOf":[{"type":"integer"},{"type":"number"}]}`
	ones := "[" + strings.Repeat("1,", 60) + "1]"
	vocab, piece, _ := schemaVocabulary()
	s, err := ParseSchema([]byte(`{"type":"array","items":` + either + `}`))
	if err != nil {
		t.Fatal(err)
	}
	g := NewSchemaGrammar(vocab, piece, s)
	for i := range len(ones) {
		g.Accept(int32(ones[i]))
		if len(g.now) > 2 {
			t.Fatalf("%d positions after %q", len(g.now), ones[:i+1])
		}
	}
	if !g.Done() {
		t.Errorf("%s is not accepted", ones)
	}
	enum := `{"type":"array","items":` + either + `,"enum":[` + ones + `]}`
	if s, err = ParseSchema([]byte(enum)); err != nil || !s.root.accepts(ones) {
		t.Errorf("%s: %v", enum, err)
	}
}

// Positions that differ in every container around them are more than can be kept: then
// nothing is known, and two alternatives that may have a value in common do not pass for
// exclusive.
func TestTooManyPositions(t *testing.T) {
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	list := `{"type":"array","maxItems":%d,"items":{"$ref":"#/$defs/x"}}`
	x := `"$defs":{"x":{"anyOf":[` + fmt.Sprintf(list, 1) + "," + fmt.Sprintf(list, 2) + "," + fmt.Sprintf(list, 3) + `]}}`
	s, err := ParseSchema([]byte(`{` + x + `,"$ref":"#/$defs/x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := s.root.judge(deep); !ok {
		t.Errorf("%s is not accepted", deep)
	}
	other := strings.Replace(deep, "[]", "[0]", 1)
	if ok, sure := s.root.judge(other); ok || sure {
		t.Errorf("%s is accepted: %v, surely: %v", other, ok, sure)
	}
	_, err = ParseSchema([]byte(`{` + x + `,"oneOf":[{"$ref":"#/$defs/x"},{"const":` + other + `}]}`))
	var bad *SchemaError
	if !errors.As(err, &bad) || !strings.Contains(err.Error(), `"oneOf"`) {
		t.Errorf("%v", err)
	}
}
