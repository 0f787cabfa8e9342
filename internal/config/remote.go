package config

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// Remote is an OpenAI-compatible server that answers in place of models.answer.
type Remote struct {
	// URL is where its interface begins, such as http://127.0.0.1:8000/v1; empty for
	// the engine of this process.
	URL   string `koanf:"url"`
	Model string `koanf:"model"`
	// APIKey is sent as a bearer token; APIKeyFile names a file that holds it.
	APIKey     string `koanf:"api_key"`
	APIKeyFile string `koanf:"api_key_file"`
	// Tokenizer is a GGUF file or model name with the served model's tokenizer and chat
	// template: then the prompt goes to /completions as tokens, counted exactly.
	// Without it messages go to /chat/completions and the server's usage is the count.
	Tokenizer string `koanf:"tokenizer"`
	// Window is the most tokens of prompt and answer together.
	Window int `koanf:"window"`
	// Stall is how long the server may send nothing.
	Stall time.Duration `koanf:"stall"`
}

// Key is the key to send, from the setting or the file.
func (r Remote) Key() (string, error) {
	if r.APIKeyFile == "" {
		return r.APIKey, nil
	}
	data, err := os.ReadFile(r.APIKeyFile)
	if err != nil {
		return "", &FieldError{"inference.remote.api_key_file", err.Error()}
	}
	return strings.TrimSpace(string(data)), nil
}

func (r Remote) check() error {
	if r.URL == "" {
		return nil
	}
	u, err := url.Parse(r.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return &FieldError{"inference.remote.url", fmt.Sprintf("%q is no http or https address", r.URL)}
	case r.Model == "":
		return &FieldError{"inference.remote.model", "is empty"}
	case r.APIKey != "" && r.APIKeyFile != "":
		return &FieldError{"inference.remote.api_key", "is given beside api_key_file"}
	}
	return nil
}
