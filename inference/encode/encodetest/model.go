package encodetest

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"ragd/inference/quant"
)

// Head is the classification head of a model.
type Head int

// The heads: dense layer and output, output alone, none at all.
const (
	FullHead Head = iota
	DirectHead
	NoHead
)

// Model describes a tiny model to write.
type Model struct {
	Family Family
	// Shape is Tiny when it is left out.
	Shape Shape
	Head  Head
	// Labels is the number of scores of the head; 0 means 1.
	Labels int
	// Type is how a GGUF file stores its matrices; 0 is F32.
	Type quant.Type
	// Folder asks for a Hugging Face folder instead of a GGUF file.
	Folder bool
	// Config adds to config.json of a folder.
	Config map[string]any
}

// Write writes the model below a folder of the test and returns its path.
func Write(t testing.TB, m Model) string {
	t.Helper()
	if m.Shape == (Shape{}) {
		m.Shape = Tiny()
	}
	f := read(t, m.Family)
	v := readVocabulary(t, f.Tokenizer)
	list := m.parts(len(v.spellings), f.Types)
	dir := t.TempDir()
	if m.Folder {
		m.writeFolder(t, dir, f, list)
		return dir
	}
	path := filepath.Join(dir, "tiny-reranker.gguf")
	if err := m.writeGGUF(path, f.Types, v, list); err != nil {
		t.Fatal(err)
	}
	return path
}

// vocabulary is what tokenizer.json says of the tokens.
type vocabulary struct {
	spellings []string
	scores    []float32 // nil for WordPiece
}

func readVocabulary(t testing.TB, data json.RawMessage) vocabulary {
	t.Helper()
	var file struct {
		Model struct {
			Type  string
			Vocab json.RawMessage
		}
	}
	err := json.Unmarshal(data, &file)
	var v vocabulary
	if file.Model.Type == "WordPiece" {
		var ids map[string]int
		if err == nil {
			err = json.Unmarshal(file.Model.Vocab, &ids)
		}
		v.spellings = make([]string, len(ids))
		for s, id := range ids {
			v.spellings[id] = s
		}
	} else {
		var pieces []piece
		if err == nil {
			err = json.Unmarshal(file.Model.Vocab, &pieces)
		}
		for _, p := range pieces {
			v.spellings, v.scores = append(v.spellings, p.spelling), append(v.scores, p.score)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// piece is ["▁the", -5.1].
type piece struct {
	spelling string
	score    float32
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *piece) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[2]any{&p.spelling, &p.score})
}
