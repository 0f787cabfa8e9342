package hybrid_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"ragd/ingest"
	"ragd/retrieve"
	"ragd/retrieve/hybrid"
	"ragd/retrieve/lexical"
	"ragd/retrieve/vector"
)

// putIn stores a document of one chunk in a collection.
func (r *rig) putIn(collection, path, text string, vec []float32) {
	r.Helper()
	e := ingest.Encoded{
		Document: ingest.Document{Path: path, Title: path, Hash: text, Type: "text/plain", Charset: "utf-8"},
		Chunks:   []ingest.Chunk{{Text: text, End: len(text), Tokens: 1}},
		Vectors:  [][]float32{vec},
	}
	if _, err := r.store.Put(r.Context(), collection, model, "r", e); err != nil {
		r.Fatal(err)
	}
}

// TestSeveralAsOne: documents that lie in three collections are found in the order
// and with the scores that they have in one, whichever way the dense side goes.
func TestSeveralAsOne(t *testing.T) {
	r := newRig(t, hybrid.DefaultConfig())
	words := strings.Fields("relay pump valve rotor motor 밸브 펌프 계전기")
	rng := rand.New(rand.NewPCG(3, 5))
	parts := []string{"small", "middle", "large"}
	for i := range 90 {
		var text []string
		for range 3 + rng.IntN(9) {
			text = append(text, words[rng.IntN(len(words))])
		}
		text = append(text, fmt.Sprintf("serial%d", i))
		c := parts[0]
		if i >= 6 {
			c = parts[1+min(1, i/30)]
		}
		vec := at(3 * rng.Float64())
		r.putIn(c, fmt.Sprintf("%s/%02d", c, i), strings.Join(text, " "), vec)
		r.putIn("one", fmt.Sprintf("%s/%02d", c, i), strings.Join(text, " "), vec)
	}
	for _, c := range append(parts[1:], "one") {
		if err := r.store.BuildIndex(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	r.putIn("empty", "blank", "x", at(0))
	if _, err := r.store.Delete(t.Context(), "empty", []string{"blank"}); err != nil {
		t.Fatal(err)
	}
	for _, below := range []int{1, 40, 1000} {
		h := r.over(vector.New(r.pool, tenant, vector.Config{ExactBelow: below}), lexical.New(r.pool, tenant, lexical.Analyzer{}), hybrid.DefaultConfig())
		for _, q := range []retrieve.Query{
			query("the pump and the 밸브", at(1), 20), query("serial7", at(2), 5), query("relay", at(0.3), 200),
			{Text: "motor", Vector: at(1.5), Model: model, Limit: 30, Filters: retrieve.Filters{PathPrefix: "middle/"}},
		} {
			q.Collections = []string{"one"}
			want, err := h.Retrieve(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			q.Collections = []string{"middle", "empty", "large", "small", "middle"}
			got, err := h.Retrieve(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(scored(want), scored(got), cmpopts.EquateApprox(0, 1e-5)); diff != "" {
				t.Errorf("exact below %d, %q (-one +several):\n%s", below, q.Text, diff)
			}
			for _, hit := range got {
				if c, _, _ := strings.Cut(hit.Document.Path, "/"); hit.Document.Collection != c {
					t.Errorf("%s is said to be in %q", hit.Document.Path, hit.Document.Collection)
				}
			}
		}
	}
}

// hitScores is what must not depend on how documents lie.
type hitScores struct {
	Path   string
	Scores retrieve.Scores
}

func scored(hits []retrieve.Hit) []hitScores {
	out := make([]hitScores, len(hits))
	for i, h := range hits {
		out[i] = hitScores{h.Document.Path, h.Scores}
	}
	return out
}

func TestSeveralCollectionsErrors(t *testing.T) {
	r := newRig(t, hybrid.DefaultConfig())
	r.putIn("a", "x", "relay", at(0))
	r.putIn("b", "x", "relay", at(0))
	if _, err := r.store.Put(t.Context(), "foreign", "older", "r", ingest.Encoded{
		Document: ingest.Document{Path: "y", Hash: "y"}, Chunks: []ingest.Chunk{{Text: "relay", End: 5, Tokens: 1}}, Vectors: [][]float32{at(0)},
	}); err != nil {
		t.Fatal(err)
	}
	q := query("relay", at(0), 5)
	q.Collections = []string{"a", "nowhere", "b"}
	var missing *retrieve.NoCollectionError
	if _, err := r.Retrieve(t.Context(), q); !errors.As(err, &missing) || missing.Name != "nowhere" {
		t.Errorf("unknown collection: %v", err)
	}
	q.Collections = []string{"a", "foreign"}
	var other *retrieve.ModelError
	if _, err := r.Retrieve(t.Context(), q); !errors.As(err, &other) || *other != (retrieve.ModelError{Collection: "foreign", Have: "older", Want: model}) {
		t.Errorf("another model: %v", err)
	}
}
