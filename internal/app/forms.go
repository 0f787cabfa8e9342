package app

import (
	"errors"
	"sync"

	"ragd/inference/sample"
	"ragd/inference/tokenizer"
	"ragd/internal/answer"
)

// forms makes the grammars that hold an answer to its form.
type forms struct {
	piece func(id int32) []byte
	// vocabulary is sorted at the first use: it takes a moment and not everybody
	// asks for JSON.
	vocabulary func() *sample.Vocabulary
}

func newForms(tok tokenizer.Tokenizer, size int) *forms {
	piece := func(id int32) []byte {
		if int(id) >= tok.Size() {
			return nil
		}
		return tok.Piece(id)
	}
	return &forms{piece: piece, vocabulary: sync.OnceValue(func() *sample.Vocabulary {
		return sample.NewVocabulary(size, piece, tok.Special().EndOfGeneration)
	})}
}

// CheckFormat implements answer.Generator.
func (f *forms) CheckFormat(format answer.ResponseFormat) error {
	_, err := f.grammar(&format)
	return err
}

// grammar is nil for text.
func (f *forms) grammar(format *answer.ResponseFormat) (sample.Grammar, error) {
	switch {
	case format == nil || format.Type == answer.FormatText:
		return nil, nil
	case format.Type == answer.FormatJSONObject:
		return sample.NewJSON(f.vocabulary(), f.piece), nil
	}
	schema, err := sample.ParseSchema(format.JSONSchema.Schema)
	var bad *sample.SchemaError
	if errors.As(err, &bad) {
		return nil, &answer.Error{Code: answer.Invalid, Field: "response_format.json_schema.schema", Message: "response_format.json_schema.schema: " + bad.Error()}
	}
	if err != nil {
		return nil, err
	}
	return sample.NewSchemaGrammar(f.vocabulary(), f.piece, schema), nil
}
