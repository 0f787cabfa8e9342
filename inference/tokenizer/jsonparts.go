package tokenizer

import (
	"encoding/base64"
	"fmt"
)

// component is a normaliser, pre-tokenizer or post-processor of tokenizer.json
// with the settings of all kinds at hand.
type component struct {
	Type string `json:"type"`

	Normalizers   []component `json:"normalizers"`
	Pretokenizers []component `json:"pretokenizers"`
	Processors    []component `json:"processors"`

	Prepend  string `json:"prepend"`
	Content  string `json:"content"`
	Charsmap string `json:"precompiled_charsmap"`
	Pattern  struct {
		String string `json:"String"`
		Regex  string `json:"Regex"`
	} `json:"pattern"`
	Behavior string `json:"behavior"`
	Invert   bool   `json:"invert"`

	AddPrefixSpace   *bool  `json:"add_prefix_space"`
	PrependScheme    string `json:"prepend_scheme"`
	Replacement      string `json:"replacement"`
	UseRegex         *bool  `json:"use_regex"`
	IndividualDigits bool   `json:"individual_digits"`

	CleanText   bool  `json:"clean_text"`
	ChineseChar bool  `json:"handle_chinese_chars"`
	StripAccent *bool `json:"strip_accents"`
	Lowercase   bool  `json:"lowercase"`

	Single        []templatePart           `json:"single"`
	Pair          []templatePart           `json:"pair"`
	SpecialTokens map[string]templateToken `json:"special_tokens"`
	Sep           processorToken           `json:"sep"`
	Cls           processorToken           `json:"cls"`
}

// parts is the component as a list, sequences laid flat. A nil component has
// none.
func (c *component) parts() []component {
	if c == nil {
		return nil
	}
	if c.Type != "Sequence" {
		return []component{*c}
	}
	var flat []component
	for _, list := range [][]component{c.Normalizers, c.Pretokenizers, c.Processors} {
		for i := range list {
			flat = append(flat, list[i].parts()...)
		}
	}
	return flat
}

// onlyNFC reports whether a normaliser is NFC; anything but that or none is
// refused.
func (c *component) onlyNFC() (bool, error) {
	nfc := false
	for _, p := range c.parts() {
		if p.Type != "NFC" {
			return false, fmt.Errorf("%w: normalizer %s before byte-level BPE", ErrUnsupported, p.Type)
		}
		nfc = true
	}
	return nfc, nil
}

// patterns are the regular expressions that pre-tokenizers are recognised by,
// as published with the models.
var patterns = map[string]string{
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:                                          "gpt-2",
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: "llama-bpe",
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:      "qwen2",
}

// splitter recognises a byte-level pre-tokenizer by its content.
func (c *component) splitter() (splitter, error) {
	parts := c.parts()
	if len(parts) == 0 || len(parts) > 2 {
		return nil, fmt.Errorf("%w: pre-tokenizer of %d parts", ErrUnsupported, len(parts))
	}
	last := parts[len(parts)-1]
	if last.Type != "ByteLevel" || last.AddPrefixSpace != nil && *last.AddPrefixSpace {
		return nil, fmt.Errorf("%w: pre-tokenizer %s with add_prefix_space or in place of ByteLevel", ErrUnsupported, last.Type)
	}
	ownPattern := last.UseRegex == nil || *last.UseRegex
	if len(parts) == 1 && ownPattern {
		return newSplitter("gpt-2")
	}
	head := parts[0]
	switch {
	case len(parts) == 2 && head.Type == "Digits" && head.IndividualDigits && ownPattern:
		return newSplitter("smollm")
	case len(parts) == 2 && head.Type == "Split" && head.Behavior == "Isolated" && !head.Invert && !ownPattern:
		name, ok := patterns[head.Pattern.Regex]
		if !ok {
			return nil, fmt.Errorf("%w: pre-tokenizer pattern %q", ErrUnsupported, head.Pattern.Regex)
		}
		return newSplitter(name)
	}
	return nil, fmt.Errorf("%w: pre-tokenizer %s with %s", ErrUnsupported, head.Type, last.Type)
}

// metaspacePrefix checks the normaliser and pre-tokenizer of a SentencePiece
// BPE vocabulary and reports whether a space is put before the text.
func (f *jsonFile) metaspacePrefix() (bool, error) {
	prefix := false
	for _, p := range f.file.Normalizer.parts() {
		switch {
		case p.Type == "Prepend" && p.Prepend == metaspace:
			prefix = true
		case p.Type == "Replace" && p.Pattern.String == " " && p.Content == metaspace:
		default:
			return false, fmt.Errorf("%w: normalizer %s before BPE with byte fallback", ErrUnsupported, p.Type)
		}
	}
	for _, p := range f.file.PreTokenizer.parts() {
		switch {
		case p.Type == "Metaspace" && p.Replacement == metaspace:
			prefix = prefix || p.prepends()
		case p.Type == "Split" && p.Pattern.String == " ": // none is left after the normaliser
		default:
			return false, fmt.Errorf("%w: pre-tokenizer %s before BPE with byte fallback", ErrUnsupported, p.Type)
		}
	}
	return prefix, nil
}

// prepends reports whether a Metaspace puts a space before the text.
func (c *component) prepends() bool {
	if c.PrependScheme != "" {
		return c.PrependScheme != "never"
	}
	return c.AddPrefixSpace == nil || *c.AddPrefixSpace
}

// unigramConfig reads the normaliser and pre-tokenizer of a Unigram model. Runs
// of white space are one space, as SentencePiece itself has it.
func (f *jsonFile) unigramConfig() (unigramConfig, error) {
	cfg := unigramConfig{}
	for _, p := range f.file.Normalizer.parts() {
		switch {
		case p.Type == "Precompiled" && cfg.charsmap == nil:
			var err error
			if cfg.charsmap, err = base64.StdEncoding.DecodeString(p.Charsmap); err != nil {
				return cfg, fmt.Errorf("%w: precompiled_charsmap: %w", ErrMalformed, err)
			}
		case p.Type == "Replace" && p.Pattern.Regex == " {2,}" && (p.Content == " " || p.Content == metaspace):
			cfg.mergeWhitespace = true
		default:
			return cfg, fmt.Errorf("%w: normalizer %s before Unigram", ErrUnsupported, p.Type)
		}
	}
	for _, p := range f.file.PreTokenizer.parts() {
		switch {
		case p.Type == "WhitespaceSplit":
			cfg.mergeWhitespace = true
		case p.Type == "Metaspace" && p.Replacement == metaspace:
			cfg.addSpacePrefix = p.prepends()
		default:
			return cfg, fmt.Errorf("%w: pre-tokenizer %s before Unigram", ErrUnsupported, p.Type)
		}
	}
	return cfg, nil
}
