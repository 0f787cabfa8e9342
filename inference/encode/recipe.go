package encode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"ragd/inference/model"
)

// recipe is what a Hugging Face folder says of a cross-encoder beside its weights.
type recipe struct {
	sigmoid bool
	limit   int // tokens of a pair; 0 when the folder does not say
}

// readRecipe reads config.json and tokenizer_config.json as sentence-transformers
// does: a model with one output is squeezed by a sigmoid unless the folder names
// another function. A GGUF file has no such word; its scores stay raw.
func readRecipe(path string) (recipe, error) {
	var config struct {
		Old string `json:"sbert_ce_default_activation_function"`
		New struct {
			Activation string `json:"activation_fn"`
		} `json:"sentence_transformers"`
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return recipe{}, err
	}
	if err := readJSON(filepath.Join(path, "config.json"), &config); err != nil {
		return recipe{}, err
	}
	var tokens struct {
		Max float64 `json:"model_max_length"`
	}
	if err := readJSON(filepath.Join(path, "tokenizer_config.json"), &tokens); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return recipe{}, err
	}
	r := recipe{}
	// Where there is no limit, the file holds a huge number.
	if tokens.Max >= 1 && tokens.Max < math.MaxInt32 {
		r.limit = int(tokens.Max)
	}
	name := config.New.Activation
	if name == "" {
		name = config.Old
	}
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "", "Sigmoid":
		r.sigmoid = true
	case "Identity":
	default:
		return recipe{}, fmt.Errorf("%w: activation %q of the scores is not supported (Sigmoid, Identity)", model.ErrConfig, name)
	}
	return r, nil
}

func readJSON(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s: %w", model.ErrConfig, filepath.Base(path), err)
	}
	return nil
}
