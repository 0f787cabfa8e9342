package model

import "ragd/inference/quant"

// Ops is what a forward pass asks of a backend. One method is what one fused
// kernel does, so that a CPU can keep a row in cache between its parts and a
// device can launch once. Tensors are opaque: only the backend that made one
// may look inside.
//
// An Ops value serves one model: its scratch grows to the largest step that
// model has run and is then reused. It belongs to one goroutine at a time.
// Compute methods return nothing: a backend that can fail (a device) keeps the
// first error and the next method that returns results reports it.
type Ops interface {
	Memory
	DecoderOps
	EncoderOps
	// Name says what runs, for the log: "cpu/avx2, 2 threads".
	Name() string
	// Close frees everything the value handed out and stops its workers.
	Close() error
}

// Memory puts a model into backend memory. Slices handed in may be reused or
// unmapped by the caller as soon as a method returns.
type Memory interface {
	// LoadMatrix copies a weight matrix of rows × cols values of type t, stored
	// row after row in t's block format.
	LoadMatrix(t quant.Type, rows, cols int, data []byte, use Use) (Matrix, error)
	// LoadVector copies a vector of weights: a norm's gain, a bias.
	LoadVector(v []float32) (Vector, error)
	// NewTensor makes activations of the given width; they have as many rows as
	// the step that is running.
	NewTensor(width int) (Tensor, error)
	// NewRope prepares rotary positions with the given angular frequencies, one
	// for each rotated pair (radians a position).
	NewRope(frequencies []float64, order PairOrder) (Rope, error)
	// NewCache reserves a KV cache, all of it at once.
	NewCache(shape CacheShape) (Cache, error)
}

// Matrix, Vector, Tensor, Rope and Cache are handles to backend memory.
type (
	// Matrix is a weight matrix; multiplying maps Cols values to Rows values.
	Matrix interface {
		Rows() int
		Cols() int
		// Bytes is the memory the matrix takes in the backend.
		Bytes() int64
	}
	// Vector is a float32 vector of weights.
	Vector interface{ Len() int }
	// Tensor is activations: a float32 row of Width values for each row of the step.
	Tensor interface{ Width() int }
	// Rope is a set of rotary frequencies.
	Rope interface{ Dim() int }
	// Cache is a paged KV cache.
	Cache interface{ Bytes() int64 }
)

// Use says what a matrix is for, so that a backend keeps only the layout it needs.
type Use int

// The uses of a matrix. A tied embedding has both.
const (
	UseProduct Use = 1 << iota
	UseLookup
)

// PairOrder says which two dimensions of a head rotate together.
type PairOrder int

const (
	// Interleaved pairs dimensions 2i and 2i+1 (GGUF's "llama" files, whose
	// query and key weights were permuted for it).
	Interleaved PairOrder = iota
	// Halves pairs dimensions i and i+n/2 (GPT-NeoX, Qwen, Gemma).
	Halves
)

// CacheShape gives the size of a KV cache: blocks of BlockTokens positions, each
// with a key and a value of KVHeads × HeadDim values in every layer.
type CacheShape struct {
	Layers, Blocks, KVHeads, HeadDim int
}

// Linear is a product with an optional bias: W·x + b.
type Linear struct {
	W Matrix
	B Vector // nil when the layer has none
}

// Norm is a normalisation over a row: RMSNorm when Shift is nil (Zhang and
// Sennrich, arXiv 1910.07467), LayerNorm otherwise. The zero value leaves the row
// as it is.
type Norm struct {
	Gain, Shift Vector
	Eps         float32
}

// Projection is one product of a shared input and where its result goes.
type Projection struct {
	Linear
	Out Tensor
}

// Rotation prepares queries and keys for attention: an optional norm of every
// head (Qwen3, Gemma 3), then rotary positions (arXiv 2104.09864).
type Rotation struct {
	Rope         Rope
	QNorm, KNorm Norm
}

// Attention is scaled dot-product attention with Heads query heads over KVHeads
// key/value heads (equal: multi-head; one: multi-query; between: grouped).
type Attention struct {
	Heads, KVHeads, HeadDim int
	// Scale multiplies the scores, usually 1/√HeadDim.
	Scale float32
	// Window is how many positions back a query sees, itself included; 0 sees all.
	Window int
	// SoftCap c replaces a score s by c·tanh(s/c); 0 leaves scores alone.
	SoftCap float32
}

// Activation is the non-linearity of a feed-forward layer.
type Activation int

// The activations of the supported families.
const (
	SiLU     Activation = iota // x·σ(x), Llama and Qwen
	GELUTanh                   // tanh approximation, Gemma
)

// GatedFFN is the gated feed-forward of the decoder family with its norms:
// x += post(Down·(act(Gate·n) ⊙ (Up·n))), n = norm(x) (arXiv 2002.05202).
type GatedFFN struct {
	Norm           Norm
	Gate, Up, Down Matrix
	Act            Activation
	Post           Norm // zero but for Gemma 3
}

// DecoderOps runs steps of a causal decoder. Begin opens a step; every row is a
// token of the batch, in batch order.
type DecoderOps interface {
	// Begin opens a step over the pieces of b.
	Begin(b Batch)
	// Embed sets x to the rows of table for the step's tokens, times scale.
	Embed(x Tensor, table Matrix, scale float32)
	// Project normalises x and multiplies the result by several matrices.
	Project(x Tensor, n Norm, out ...Projection)
	// Append rotates q and k, and writes k and v into the cache at the step's positions.
	Append(c Cache, layer int, q, k, v Tensor, r Rotation)
	// Attend sets dst to causal attention of q over the cached positions up to its own.
	Attend(dst, q Tensor, c Cache, layer int, a Attention)
	// Residual is x += post(W·in + b).
	Residual(x, in Tensor, w Linear, post Norm)
	// FeedForward applies a gated feed-forward layer with its residual.
	FeedForward(x Tensor, f *GatedFFN)
	// Logits multiplies the rows that asked for logits, normalised, by w. The
	// rows are valid until the next step.
	Logits(x Tensor, n Norm, w Matrix) ([][]float32, error)
}

// Text is one input of an encoder: its tokens with the special ones, and where the
// second segment of a pair begins (token type 1); 0 when there is one segment.
type Text struct {
	Tokens []int32
	Second int
}

// TextEmbedding is the input layer of the BERT family: the norm of
// token + position + type embedding.
type TextEmbedding struct {
	Tokens, Positions, Types Matrix // Types is nil when the model has none
	Norm                     Norm
}

// FFN is the plain feed-forward of the encoder family with its residual and norm:
// x = norm(x + Down·gelu(Up·x)), with the exact (erf) GELU.
type FFN struct {
	Up, Down Linear
	Norm     Norm
}

// Pooling turns the rows of a text into one vector.
type Pooling int

// The poolings of embedding models, with GGUF's numbers.
const (
	PoolNone Pooling = 0
	PoolMean Pooling = 1
	PoolCLS  Pooling = 2
	PoolRank Pooling = 4 // a classification head follows the first row
)

// EncoderOps runs bidirectional encoders over packed texts: the rows of one text
// follow those of the text before, with no padding between.
type EncoderOps interface {
	// BeginTexts opens a step over whole texts.
	BeginTexts(texts []Text)
	// EmbedTexts sets x to the input layer of the step's tokens.
	EmbedTexts(x Tensor, e *TextEmbedding)
	// AttendTexts sets dst to attention in which every row sees its whole text.
	AttendTexts(dst, q, k, v Tensor, a Attention)
	// ResidualNorm is x = n(x + W·in + b).
	ResidualNorm(x, in Tensor, w Linear, n Norm)
	// FeedForwardNorm applies a plain feed-forward layer with its residual and norm.
	FeedForwardNorm(x Tensor, f *FFN)
	// Pool returns one vector a text, scaled to length one when unit is set. The
	// vectors are valid until the next step.
	Pool(x Tensor, p Pooling, unit bool) ([][]float32, error)
	// Classify applies a classification head to the first row of each text:
	// Out·tanh(Dense·x₀ + b) + b; without Dense, Out·x₀ + b.
	Classify(x Tensor, dense, out Linear) ([][]float32, error)
}
