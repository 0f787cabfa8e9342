// Package model holds the forward passes: one for the decoder family (Llama and
// its relatives), one for the encoder family (BERT, XLM-RoBERTa). They are
// written once over Ops, which a backend satisfies.
package model

// Config is what a forward pass needs to know about a model, read from the
// container's metadata.
type Config struct {
	// Architecture is the GGUF name of the family: "llama", "qwen2", "qwen3",
	// "gemma3", "bert".
	Architecture string
	Name         string
	Layers       int
	Width        int // model (embedding) width
	Heads        int // query heads
	KVHeads      int // key/value heads
	HeadDim      int
	FeedForward  int
	Vocab        int
	Context      int // longest sequence the model was trained for, in tokens
	// NormEps is the epsilon of RMSNorm or LayerNorm.
	NormEps float32
	// RopeBase is the base of the rotary frequencies; 0 when positions are learned.
	RopeBase float32
	// RopeDim is the number of leading dimensions of a head that rotate.
	RopeDim int
	// Weights is the number of bytes the loaded weights take.
	Weights int64
}

// KVBytesPerToken is layers × kv_heads × head_dim × 2 × bytes per element, for
// an element of elemBytes bytes (2 for f16; q8_0 takes 34/32).
func (c Config) KVBytesPerToken(elemBytes float64) float64 {
	return float64(c.Layers) * float64(c.KVHeads) * float64(c.HeadDim) * 2 * elemBytes
}
