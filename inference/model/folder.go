package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ragd/inference/safetensors"
)

// LoadEncoderFolder is LoadEncoder for a Hugging Face folder: config.json,
// model.safetensors and, where it has them, the files of sentence-transformers
// that tell pooling, longest text and prompts.
func LoadEncoderFolder(ctx context.Context, dir string, ops Ops) (*BERT, error) {
	f, err := safetensors.Open(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, c, err := readFolder(dir, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	m, err := loadBERT(ctx, src, ops, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return m, nil
}

// folderConfig is what config.json says of an encoder.
type folderConfig struct {
	ModelType    string  `json:"model_type"`
	Layers       int     `json:"num_hidden_layers"`
	Width        int     `json:"hidden_size"`
	Heads        int     `json:"num_attention_heads"`
	FeedForward  int     `json:"intermediate_size"`
	Positions    int     `json:"max_position_embeddings"`
	Eps          float32 `json:"layer_norm_eps"`
	Act          string  `json:"hidden_act"`
	PositionType string  `json:"position_embedding_type"`
	Pad          int     `json:"pad_token_id"`
}

func readFolder(dir string, f *safetensors.File) (*folderSource, *EncoderConfig, error) {
	var fc folderConfig
	if err := readJSON(dir, "config.json", &fc); err != nil {
		return nil, nil, err
	}
	src := newFolderSource(f, &fc)
	c, err := fc.encoder(dir)
	if err != nil {
		return nil, nil, err
	}
	if err := readRecipe(dir, c); err != nil {
		return nil, nil, err
	}
	return src, c, c.complete(src)
}

// encoder turns config.json into the configuration of the pass.
func (fc *folderConfig) encoder(dir string) (*EncoderConfig, error) {
	switch fc.ModelType {
	case "bert", "xlm-roberta", "roberta":
	default:
		return nil, &UnknownArchitectureError{Architecture: fc.ModelType, Known: []string{"bert", "roberta", "xlm-roberta"}}
	}
	if fc.Act != "gelu" || fc.PositionType != "" && fc.PositionType != "absolute" {
		return nil, fmt.Errorf("%w: activation %q with %q positions is not supported (gelu, absolute)", ErrConfig, fc.Act, fc.PositionType)
	}
	for _, n := range []struct {
		key                string
		value, least, most int
	}{
		{"num_hidden_layers", fc.Layers, 1, maxLayers},
		{"hidden_size", fc.Width, 1, maxWidth},
		{"num_attention_heads", fc.Heads, 1, maxWidth},
		{"intermediate_size", fc.FeedForward, 1, maxWidth * 8},
		{"max_position_embeddings", fc.Positions, 1, maxContext},
		{"pad_token_id", fc.Pad, 0, maxVocab},
	} {
		if n.value < n.least || n.value > n.most {
			return nil, fmt.Errorf("%w: config.json: %s is %d (%d to %d)", ErrConfig, n.key, n.value, n.least, n.most)
		}
	}
	return &EncoderConfig{Config: Config{
		Architecture: "bert", Name: filepath.Base(dir), Layers: fc.Layers, Width: fc.Width, Heads: fc.Heads,
		FeedForward: fc.FeedForward, Context: fc.Positions, NormEps: fc.Eps,
	}}, nil
}

// readRecipe reads how sentence-transformers turns rows into embeddings. A folder
// without it holds a cross-encoder or a bare model, which pools nothing.
func readRecipe(dir string, c *EncoderConfig) error {
	var modules []struct{ Path, Type string }
	var pooling struct {
		CLS  bool `json:"pooling_mode_cls_token"`
		Mean bool `json:"pooling_mode_mean_tokens"`
	}
	var limit struct {
		Max int `json:"max_seq_length"`
	}
	var prompts struct{ Prompts map[string]string }
	for name, into := range map[string]any{
		"modules.json": &modules, "1_Pooling/config.json": &pooling,
		"sentence_bert_config.json": &limit, "config_sentence_transformers.json": &prompts,
	} {
		if err := readJSON(dir, name, into); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for _, m := range modules {
		c.Unit = c.Unit || strings.HasSuffix(m.Type, ".Normalize")
	}
	switch {
	case pooling.Mean:
		c.Pooling = PoolMean
	case pooling.CLS:
		c.Pooling = PoolCLS
	}
	if limit.Max > 0 {
		c.Context = min(c.Context, limit.Max)
	}
	c.QueryPrefix = prompts.Prompts["query"]
	c.PassagePrefix = prompts.Prompts["passage"]
	if c.PassagePrefix == "" {
		c.PassagePrefix = prompts.Prompts["document"]
	}
	return nil
}

func readJSON(dir, name string, into any) error {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrConfig, name, err)
	}
	return nil
}

// folderSource serves the tensors of a Hugging Face encoder under GGUF's names.
type folderSource struct {
	f      *safetensors.File
	stored map[string]string // GGUF's name → name in the file
	skip   int               // rows of position_embd that number no position
}

// folderNames maps the parts outside the layers, folderLayer those of a layer.
var (
	folderNames = map[string]string{
		"embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
		"embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm",
		"pooler.dense": "cls", "classifier": "cls.output", "classifier.dense": "cls", "classifier.out_proj": "cls.output",
	}
	folderLayer = map[string]string{
		"attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
		"attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
		"intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm",
	}
)

func newFolderSource(f *safetensors.File, fc *folderConfig) *folderSource {
	s := &folderSource{f: f, stored: map[string]string{}}
	if fc.ModelType != "bert" {
		// RoBERTa numbers positions from pad_token_id + 1 on.
		s.skip = fc.Pad + 1
	}
	for _, name := range f.Names() {
		if strings.HasSuffix(name, "embeddings.position_ids") {
			continue // 0, 1, 2, …: a buffer, not a weight
		}
		s.stored[folderName(name)] = name
	}
	if _, ok := s.stored["cls.output.weight"]; !ok {
		// Without a classifier the pooler is a left-over of pre-training.
		delete(s.stored, "cls.weight")
		delete(s.stored, "cls.bias")
	}
	return s
}

// folderName is GGUF's name of a tensor, or the name itself when it has none.
func folderName(name string) string {
	bare := strings.TrimPrefix(strings.TrimPrefix(name, "bert."), "roberta.")
	dot := strings.LastIndexByte(bare, '.')
	if dot < 0 {
		return name
	}
	part, end := bare[:dot], bare[dot:]
	if rest, ok := strings.CutPrefix(part, "encoder.layer."); ok {
		layer, part, _ := strings.Cut(rest, ".")
		if known, ok := folderLayer[part]; ok {
			return "blk." + layer + "." + known + end
		}
		return name
	}
	if known, ok := folderNames[part]; ok {
		return known + end
	}
	return name
}

func (s *folderSource) names() []string {
	names := make([]string, 0, len(s.stored))
	for name := range s.stored {
		names = append(names, name)
	}
	return names
}

func (s *folderSource) info(name string) (tensorInfo, bool) {
	t, ok := s.f.Tensor(s.stored[name])
	if !ok {
		return tensorInfo{}, false
	}
	typ, ok := t.Type()
	return tensorInfo{typ: typ, rows: t.Rows() - s.skipped(name), cols: t.Cols()}, ok
}

func (s *folderSource) skipped(name string) int {
	if name == "position_embd.weight" {
		return s.skip
	}
	return 0
}

func (s *folderSource) read(name string) ([]byte, error) {
	t, _ := s.f.Tensor(s.stored[name])
	data, err := s.f.Read(t)
	if err != nil {
		return nil, err
	}
	return data[len(data)/t.Rows()*s.skipped(name):], nil
}
