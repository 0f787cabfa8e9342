package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// described fetches the document.
func described(t *testing.T) (doc object, text string) {
	t.Helper()
	resp, err := http.Get(newServer(t, &fakeAsker{}).URL + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &doc); err != nil || resp.StatusCode != 200 || doc["openapi"] != "3.1.0" {
		t.Fatalf("%d %.200s: %v", resp.StatusCode, data, err)
	}
	return doc, string(data)
}

// Every route is described, and nothing that is no route.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	doc, text := described(t)
	var want, got []string
	handler := New(Deps{Guard: guard(t), Metrics: http.NotFoundHandler(), Latency: http.NotFoundHandler(), LatencyData: http.NotFoundHandler()}, Config{})
	param := regexp.MustCompile(`[:*]([a-z]+)`)
	for _, r := range handler.(*gin.Engine).Routes() {
		want = append(want, r.Method+" "+param.ReplaceAllString(r.Path, "{$1}"))
	}
	for path, item := range doc["paths"].(object) {
		for method := range item.(object) {
			got = append(got, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("described %v\nroutes    %v", got, want)
	}
	components := doc["components"].(object)["schemas"].(object)
	for _, ref := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(text, -1) {
		if components[ref[1]] == nil {
			t.Errorf("%s is referred to and not there", ref[1])
		}
	}
}

// Every field of a body that is read or sent is in its schema, and nothing else: what
// encoding/json makes of a full value is held against the document.
func TestOpenAPIHasEveryField(t *testing.T) {
	doc, _ := described(t)
	components := doc["components"].(object)["schemas"].(object)
	for _, v := range []any{
		answer.Request{},
		answer.Result{},
		answer.SearchRequest{},
		answer.SearchResult{},
		answer.Usage{},
		answer.Source{},
		answer.Citation{},
		answer.Budget{},
		answer.Sampling{},
		completionRequest{},
		completion{},
		completionChunk{},
		completionUsage{},
		completionReport{},
		embeddingRequest{},
		embeddingList{},
		rerankRequest{},
		rerankResponse{},
		rerankItem{},
		Model{},
		KeyRequest{},
		NewKey{},
		IngestRequest{},
		deleteRequest{},
		errorDetail{},
		openAIErrorDetail{},
		ingestLine{},
		retrievalOptions{},
	} {
		full := reflect.New(reflect.TypeOf(v)).Elem()
		fill(full)
		data, err := json.Marshal(full.Interface())
		if err != nil {
			t.Fatalf("%T: %v", v, err)
		}
		var sent object
		if err := json.Unmarshal(data, &sent); err != nil {
			t.Fatal(err)
		}
		schema, _ := components[componentName(full.Type())].(object)
		props, _ := schema["properties"].(object)
		for name := range sent {
			if props[name] == nil {
				t.Errorf("%T: %s is not described", v, name)
			}
		}
		for name := range props {
			if _, ok := sent[name]; !ok {
				t.Errorf("%T: %s is described and not sent", v, name)
			}
		}
	}
}

// fill sets the fields of a struct, embedded ones too, so that none is left out as empty.
func fill(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case !f.CanSet() && !v.Type().Field(i).Anonymous:
		case f.Kind() == reflect.Struct && v.Type().Field(i).Anonymous:
			fill(reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem())
		case f.Type() == reflect.TypeFor[json.RawMessage]():
			f.SetBytes([]byte("{}"))
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			if f.Type().Elem() == reflect.TypeFor[json.RawMessage]() {
				f.Elem().SetBytes([]byte("{}"))
			}
		case f.Kind() == reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case f.Kind() == reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.CanInt():
			f.SetInt(1)
		case f.CanFloat():
			f.SetFloat(1)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		}
	}
}
