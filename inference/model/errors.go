package model

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrConfig says that a model's metadata is missing something, contradicts
	// itself or lies outside the bounds a forward pass can serve.
	ErrConfig = errors.New("model configuration")
	// ErrTensor says that a weight is missing, has another shape than the
	// configuration asks for, or belongs to no part of the family.
	ErrTensor = errors.New("model tensor")
	// ErrBatch says that a step does not fit the model: a token outside the
	// vocabulary, a position past the context, a block outside the cache.
	ErrBatch = errors.New("batch")
)

// UnknownArchitectureError tells that no forward pass here fits a model.
type UnknownArchitectureError struct {
	// Architecture is what the file says.
	Architecture string
	// Known are the architectures of the family that was asked for.
	Known []string
}

func (e *UnknownArchitectureError) Error() string {
	return fmt.Sprintf("unknown model architecture %q (known: %s)", e.Architecture, strings.Join(e.Known, ", "))
}
