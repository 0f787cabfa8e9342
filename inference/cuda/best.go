//go:build cuda && cgo

package cuda

import (
	"encoding/binary"
	"math"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

var _ model.BestOps = (*Backend)(nil)

// The sizes of kernel/best.cu.
const (
	bestChunk   = 1024
	bestThreads = 256
	keyBytes    = 8
	maxBest     = 64 // a small part of a chunk, so that rounds are few
)

// MaxBest is the most logits of a row that BestLogits chooses.
func (b *Backend) MaxBest() int { return maxBest }

// BestLogits is Logits of which only the k largest of each row leave the device.
func (b *Backend) BestLogits(x model.Tensor, n model.Norm, w model.Matrix, k int) ([]model.Best, error) {
	rows, width := len(b.step.logits), w.Rows()
	if rows == 0 {
		_, err := b.flush(0, 0)
		return nil, err
	}
	logits := b.logits(x, n, w)
	k = min(k, width)
	keys := b.choose(logits, rows, width, k)
	all, err := b.flush(keys, rows*(k+1)*keyBytes)
	if err != nil {
		return nil, err
	}
	return b.readBest(all, rows, k), nil
}

// choose reduces rows of logits to k keys each, followed by a maximum and a sum for
// each row, and returns where they are.
func (b *Backend) choose(logits cudrv.Ptr, rows, width, k int) cudrv.Ptr {
	chunks := ceil(width, bestChunk)
	sums := b.reserve(&b.sums, int64(rows)*int64(chunks)*keyBytes)
	from, left := cudrv.Ptr(0), width
	for i := 0; ; i = 1 - i {
		n := ceil(left, bestChunk)
		to := b.reserve(&b.keys[i], int64(rows)*int64(n*k+1)*keyBytes)
		b.launch(b.kernels["best_logits"], cudrv.Grid{X: n, Y: rows, Z: 1, Threads: bestThreads, Shared: bestChunk * keyBytes}).
			ptrs(to, sums, logits, from).ints(left, k)
		if n == 1 {
			b.launch(b.kernels["join_sums"], cudrv.Grid{X: rows, Y: 1, Z: 1, Threads: 32}).
				ptrs(to+cudrv.Ptr(rows*k*keyBytes), sums).ints(chunks)
			return to
		}
		from, left = to, n*k
	}
}

// readBest reads what choose left.
func (b *Backend) readBest(all []byte, rows, k int) []model.Best {
	b.best = b.best[:0]
	sums := all[rows*k*keyBytes:]
	for r := range rows {
		best := model.Best{IDs: make([]int32, 0, k), Logits: make([]float32, 0, k)}
		for i := range k {
			key := binary.LittleEndian.Uint64(all[(r*k+i)*keyBytes:])
			best.IDs = append(best.IDs, int32(^uint32(key)))
			best.Logits = append(best.Logits, logitOf(uint32(key>>32)))
		}
		pair := floatsOf(sums[r*keyBytes:][:keyBytes])
		best.LogSum = float64(pair[0]) + math.Log(float64(pair[1]))
		b.best = append(b.best, best)
	}
	return b.best
}

// logitOf undoes the order-preserving change of kernel/best.cu's key_of.
func logitOf(bits uint32) float32 {
	if bits>>31 == 1 {
		return math.Float32frombits(bits ^ 1<<31)
	}
	return math.Float32frombits(^bits)
}
