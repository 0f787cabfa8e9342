package answer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestValidateNamesTheField(t *testing.T) {
	for name, c := range map[string]struct{ body, field string }{
		"no question":        {`{}`, "question"},
		"blank":              {`{"question":"   "}`, "question"},
		"invisible":          {`{"question":"\u200b\ufeff"}`, "question"},
		"NUL":                {`{"question":"a\u0000b"}`, "question"},
		"top_k 0":            {`{"question":"q","top_k":0}`, "top_k"},
		"top_k -1":           {`{"question":"q","top_k":-1}`, "top_k"},
		"top_k huge":         {`{"question":"q","top_k":1001}`, "top_k"},
		"max_chunks":         {`{"question":"q","max_chunks":0}`, "max_chunks"},
		"temperature":        {`{"question":"q","sampling":{"temperature":-0.1}}`, "sampling.temperature"},
		"top_p":              {`{"question":"q","sampling":{"top_p":1.5}}`, "sampling.top_p"},
		"penalty":            {`{"question":"q","sampling":{"repetition_penalty":0}}`, "sampling.repetition_penalty"},
		"empty stop":         {`{"question":"q","sampling":{"stop":[""]}}`, "sampling.stop[0]"},
		"answer_tokens":      {`{"question":"q","budget":{"answer_tokens":0}}`, "budget.answer_tokens"},
		"ttft":               {`{"question":"q","budget":{"ttft_ms":0}}`, "budget.ttft_ms"},
		"detail":             {`{"question":"q","budget":{"detail":"some"}}`, "budget.detail"},
		"mode":               {`{"question":"q","answer_mode":"guess"}`, "answer_mode"},
		"format":             {`{"question":"q","response_format":{"type":"xml"}}`, "response_format.type"},
		"role":               {`{"question":"q","history":[{"role":"system","content":"x"}]}`, "history[0].role"},
		"history NUL":        {`{"question":"q","history":[{"role":"user","content":"\u0000"}]}`, "history[0].content"},
		"both ways":          {`{"question":"q","collection":"a","collections":["b"]}`, "collections"},
		"no collections":     {`{"question":"q","collections":[]}`, "collections"},
		"17 collections":     {`{"question":"q","collections":["a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q"]}`, "collections"},
		"empty name":         {`{"question":"q","collections":["a",""]}`, "collections[1]"},
		"NUL in a name":      {`{"question":"q","collections":["a\u0000"]}`, "collections[0]"},
		"metadata no values": {`{"question":"q","filters":{"metadata":{"k":[]}}}`, "filters.metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			var r Request
			if err := json.Unmarshal([]byte(c.body), &r); err != nil {
				t.Fatal(err)
			}
			var e *Error
			if err := r.Validate(); !errors.As(err, &e) || e.Field != c.field || !strings.Contains(e.Message, strings.TrimSuffix(c.field, "[0]")) {
				t.Errorf("got %v, want an error of field %s", err, c.field)
			}
		})
	}
}

func TestValidateTakesDefaultsAndBounds(t *testing.T) {
	for _, body := range []string{
		`{"question":"q"}`,
		`{"question":"q","top_k":null,"max_chunks":null,"sampling":null,"budget":null,"filters":null}`,
		`{"question":"q","top_k":1}`,
		`{"question":"q","top_k":1000,"sampling":{"temperature":1e-12,"top_p":0}}`,
		`{"question":"q","filters":{"metadata":{"lang":"ko","tag":["a","b"]}}}`,
		`{"question":"가","response_format":{"type":"text"},"answer_mode":"extract"}`,
	} {
		var r Request
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if r.Collection != "default" {
			t.Errorf("collection %q", r.Collection)
		}
	}
}

func TestFiltersAreBounded(t *testing.T) {
	many := map[string]Values{}
	for i := range MaxFilterKeys + 1 {
		many[fmt.Sprint("key", i)] = Values{"v"}
	}
	r := Request{Question: "q", Filters: &Filters{Metadata: many}}
	if e := AsError(r.Validate()); e.Code != Invalid || e.Field != "filters.metadata" {
		t.Errorf("%d keys: %v", len(many), e)
	}
	delete(many, "key0")
	if err := r.Validate(); err != nil {
		t.Errorf("%d keys: %v", len(many), err)
	}
	for _, value := range []string{`null`, `["a",null]`, `5`, `[5]`, `{}`, `[["a"]]`} {
		var e *Error
		if err := json.Unmarshal([]byte(`{"k":`+value+`}`), &map[string]Values{}); !errors.As(err, &e) || e.Field != "filters.metadata" {
			t.Errorf("%s: %v", value, err)
		}
	}
}

func TestQuestionTooLarge(t *testing.T) {
	r := Request{Question: strings.Repeat("x", MaxQuestionBytes+1)}
	if e := AsError(r.Validate()); e.Code != TooLarge || e.Field != "question" {
		t.Errorf("got %v", e)
	}
}

func TestLanguage(t *testing.T) {
	for text, want := range map[string]string{
		"What is the gate code?":                         "en",
		"게이트 코드는 무엇인가요?":                                 "ko",
		"PostgreSQL의 HNSW ef_search는?":                   "ko",
		"ERR-4402":                                       "en",
		"データベースは何ですか":                                    "ja",
		"数据库是什么":                                         "zh",
		"What does 김 mean in English, as a family name?": "en",
		"": "en",
	} {
		if got := language(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
