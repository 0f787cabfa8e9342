package sample

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// accepts runs the automaton over a whole text.
func accepts(doc []byte) bool {
	var s jsonState
	for _, c := range doc {
		if !s.step(c) {
			return false
		}
	}
	return s.mode == atEnd
}

func TestJSONAccepts(t *testing.T) {
	good := []string{
		`{}`, ` {"a":1}`, "{\n  \"a\": [1, -0.5e+3, 0, 10, 2E-1],\n\t\"b\": {\"c\": null}}", `{"":[[],{},[{}]],"x":true,"y":false}`,
		`{"a":"\u00e9\n\"\\\/","한":"글😀"}`, `{"a":[1,[2,{"b":[]}]]}`,
	}
	bad := []string{
		``, `[]`, `1`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":+1}`, `{"a":1e}`, `{"a":-}`,
		`{"a":tru}`, `{"a":True}`, `{a:1}`, `{'a':1}`, `{"a":1}}`, `{"a":1} `, `{"a":[1}`, `{"a":[1,]}`, `{"a":"\x"}`, `{"a":"\u12g4"}`,
		"{\"a\":\"\n\"}", "{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xe2\x82\"}", `{"a":1 2}`, `{"a" 1}`,
	}
	for _, doc := range good {
		if !accepts([]byte(doc)) {
			t.Errorf("refused %s", doc)
		}
	}
	for _, doc := range bad {
		if accepts([]byte(doc)) {
			t.Errorf("accepted %s", doc)
		}
	}
	for _, n := range []int{maxJSONDepth, maxJSONDepth + 1} {
		doc := []byte(`{"a":` + string(bytes.Repeat([]byte("["), n-1)) + string(bytes.Repeat([]byte("]"), n-1)) + "}")
		if accepts(doc) != (n <= maxJSONDepth) {
			t.Errorf("depth %d", n)
		}
	}
}

// The automaton accepts what encoding/json does, within its own bounds.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2.5e3,"x\u00e9",{"b":null}],"c":true}`))
	f.Add([]byte("{ \"\xe2\x82\xac\" : \"\xf0\x9f\x98\x80\" }"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		trimmed := bytes.TrimLeft(doc, " \n\t\r")
		want := json.Valid(doc) && utf8.Valid(doc) && bytes.HasPrefix(trimmed, []byte("{")) && doc[len(doc)-1] == '}'
		got := accepts(doc)
		if got && !want {
			t.Fatalf("accepted %q", doc)
		}
		if want && !got && len(doc) < maxJSONDepth { // too short to meet a bound
			t.Fatalf("refused %q", doc)
		}
	})
}

// tokens is a vocabulary of all bytes, some words that cross every border of
// the grammar, and at its end a control token and the end of generation.
func tokens() [][]byte {
	var v [][]byte
	for c := range 256 {
		v = append(v, []byte{byte(c)})
	}
	for _, w := range []string{
		`{"`, `":`, `": "`, `",`, `", "`, `"}`, `}}`, `]}`, ` {`, "\n", "\n  ", `true`, `tru`, `e,`, `false`, `null}`, `12`, `1.5`, `e+`, `the`, ` the`,
		`é`, `한국`, "\xed\x95", `\"`, `\u00`, `abc"`, `abc\`, `, `, `[[`, `[]`, `{}`, `-`, `0`, `00`,
	} {
		v = append(v, []byte(w))
	}
	return append(v, nil, nil)
}

func newJSON() (*JSON, [][]byte, int32) {
	v := tokens()
	end := int32(len(v) - 1)
	piece := func(id int32) []byte { return v[id] }
	return NewJSON(NewVocabulary(len(v), piece, []int32{end}), piece), v, end
}

// Mask allows exactly the tokens whose bytes the automaton takes one by one.
func TestMaskAgainstEachTokenAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, v, end := newJSON()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			row := make([]float32, len(v))
			j.Mask(row)
			var open []int32
			for id, p := range v {
				s, ok := j.state, len(p) > 0
				for _, c := range p {
					ok = ok && s.step(c)
				}
				if int32(id) == end {
					ok = j.Done()
				}
				if allowed := row[id] == 0; allowed != ok {
					t.Fatalf("token %q in %+v: allowed %v", p, j.state, allowed)
				}
				if ok {
					open = append(open, int32(id))
				}
			}
			if len(open) == 0 {
				t.Fatalf("nothing is allowed in %+v", j.state)
			}
			id := rapid.SampledFrom(open).Draw(t, "token")
			if id == end {
				return
			}
			j.Accept(id)
		}
	})
}

// Whatever the model prefers, an answer that ends is one JSON object.
func TestMaskedSamplingGivesJSON(t *testing.T) {
	ended := 0
	for seed := range uint64(40) {
		j, v, end := newJSON()
		s, err := New(Params{Temperature: 1, Seed: seed, Grammar: j}, len(v))
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		var out []byte
		for range 400 {
			row := make([]float32, len(v))
			for i := range row {
				row[i] = float32(rng.NormFloat64()) * 2
			}
			row['}'], row['"'], row[end] = 3, 3, 9
			id, err := s.Sample(row)
			if err != nil {
				t.Fatalf("after %q: %v", out, err)
			}
			if id == end {
				ended++
				var object map[string]json.RawMessage
				if err := json.Unmarshal(out, &object); err != nil {
					t.Fatalf("%q: %v", out, err)
				}
				break
			}
			s.Accept(id)
			out = append(out, v[id]...)
		}
	}
	if ended < 20 {
		t.Errorf("only %d of 40 answers ended", ended)
	}
}

func TestBlankRunsEnd(t *testing.T) {
	j, v, _ := newJSON()
	for range 1000 {
		j.Accept(' ')
	}
	row := make([]float32, len(v))
	j.Mask(row)
	if !math.IsInf(float64(row[' ']), -1) || row['{'] != 0 {
		t.Error("white space may go on for ever")
	}
}
