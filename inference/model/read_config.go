package model

import "ragd/inference/gguf"

// ReadConfig reads and checks what a decoder's file says of its shape, without
// loading it. Errors are those of LoadDecoder.
func ReadConfig(f *gguf.File) (Config, error) {
	spec, err := readDecoderSpec(metadata{f: f}, ggufSource{f})
	if err != nil {
		return Config{}, err
	}
	return spec.Config, nil
}
