// Package kernel holds the inner loops of the CPU backend. Each loop exists as
// portable Go, compiled everywhere, and as assembly for some instruction sets
// with the same signature; a Set is one consistent choice of them. Kernels
// import nothing of ragd.
//
// A result for one output element never depends on how many rows are computed
// together: every element is reduced in the same order whatever the tile.
package kernel

// Type is a GGUF (ggml) tensor type id.
type Type uint32

// The types of DESIGN §6, with ggml's numbers.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2
	Q4_1 Type = 3
	Q5_0 Type = 6
	Q5_1 Type = 7
	Q8_0 Type = 8
	Q4_K Type = 12
	Q5_K Type = 13
	Q6_K Type = 14
	BF16 Type = 30
)

// Set is the kernels of one instruction set. Slices may not overlap unless a
// field says so; lengths are the caller's promise and are not checked.
type Set struct {
	// Name says which set it is: "portable", "avx2", "avx512vnni".
	Name string

	// Dot is Σ a[i]·b[i].
	Dot func(a, b []float32) float32
	// Axpy is y[i] += a·x[i].
	Axpy func(y []float32, a float32, x []float32)
	// Add is y[i] += x[i].
	Add func(y, x []float32)
	// Scale is y[i] *= a.
	Scale func(y []float32, a float32)
	// DotF16 is Σ a[i]·f32(b[i]) for IEEE half b.
	DotF16 func(a []float32, b []uint16) float32
	// AxpyF16 is y[i] += a·f32(x[i]) for IEEE half x.
	AxpyF16 func(y []float32, a float32, x []uint16)
	// ToF16 and FromF16 convert, rounding to nearest even.
	ToF16   func(dst []uint16, src []float32)
	FromF16 func(dst []float32, src []uint16)
	// ToQ8 and FromQ8 convert to and from ggml's q8_0, codes and scales (IEEE half)
	// apart: len(d) blocks of BlockCols values. ToQ8 rounds halves away from zero, as
	// ggml does; a block with an infinity or NaN gets such a scale. What FromQ8
	// writes is exact.
	ToQ8   func(q []int8, d []uint16, x []float32)
	FromQ8 func(dst []float32, q []int8, d []uint16)
	// FetchQ8 begins to bring what FromQ8 will read into the cache.
	FetchQ8 func(q []int8, d []uint16)

	// AttendBlock is the inner step of attention for one query row over n (1 to
	// 16) cached rows of one block: given scores s = scale·q·k_j it updates the
	// running maximum, sum and weighted accumulator (FlashAttention's
	// recurrence, arXiv 2205.14135). k and v point at the first row of the head
	// in the block; rows are stride elements apart; len(q) is the head dimension.
	AttendBlock func(st *SoftmaxState, acc, q []float32, k, v []uint16, n, stride int, scale float32)
	// AttendTile is AttendBlock for len(st) query rows that see the same cached
	// rows: grouped heads of one position, or of several positions. The rows of q
	// and acc lie one after the other (head dimension = len(q)/len(st)). It takes one
	// run after another, and fetches those to come into the cache where stride is the
	// head dimension. Every row gets the bits that AttendBlock would give it alone,
	// run by run.
	AttendTile func(st []SoftmaxState, acc, q []float32, k, v []uint16, runs []Run, stride int, scale float32)
	// AttendTileF32 is AttendTile over float32 keys and values.
	AttendTileF32 func(st []SoftmaxState, acc, q, k, v []float32, runs []Run, stride int, scale float32)

	// RMSNorm is dst = x / sqrt(mean(x²)+eps) · w. dst may be x.
	RMSNorm func(dst, x, w []float32, eps float32)
	// LayerNorm is dst = (x-mean)/sqrt(var+eps)·w + b. dst may be x.
	LayerNorm func(dst, x, w, b []float32, eps float32)
	// Softmax replaces x by its softmax.
	Softmax func(x []float32)
	// SiLUMul is dst = silu(gate)·up. dst may be gate.
	SiLUMul func(dst, gate, up []float32)
	// GELU replaces x by 0.5x(1+erf(x/√2)); GELUTanhMul is dst = gelu_tanh(gate)·up.
	GELU        func(x []float32)
	GELUTanhMul func(dst, gate, up []float32)
	// RopePairs rotates x[2i], x[2i+1] (interleaved pairs, as GGUF's llama
	// permutation expects); RopeHalves rotates x[i], x[i+n/2] (NeoX order).
	// cos and sin hold n/2 values.
	RopePairs, RopeHalves func(x, cos, sin []float32)

	// Quantize fills row of a from x (len a.Cols): blocks of 32 to int8 clamped to
	// ±127 with an fp32 scale and the sums of the block. A block that holds an
	// infinity or NaN makes every product with it NaN.
	Quantize func(a *Acts, row int, x []float32)
	// MatMul computes dst[r·stride+c] = Σ a[r]·w[c] for activation rows
	// [rlo,rhi) and weight rows [clo,chi); clo is a multiple of PackRows. The
	// weights must be quantised (w.Quantized()).
	MatMul func(dst []float32, stride int, a *Acts, rlo, rhi int, w *Matrix, clo, chi int)
	// MatMulF32 is the same over float32 activations x (row r at x[r·xstride:]).
	// The weights must not be quantised.
	MatMulF32 func(dst []float32, stride int, x []float32, xstride, rlo, rhi int, w *Matrix, clo, chi int)
}

// PackRows is how many weight rows are interleaved in a packed matrix; work is
// split at multiples of it.
const PackRows = 8

// SoftmaxState is the running maximum and sum of one row of attention.
// Start with Max = -Inf, Sum = 0 and a zeroed accumulator; the result is
// acc / Sum.
type SoftmaxState struct{ Max, Sum float32 }

// Run is N (1 to 16) cached rows one after another, of which the first begins at
// element At of the keys, and of the values.
type Run struct{ At, N int }
