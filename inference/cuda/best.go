//go:build cuda && cgo

package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

var _ model.BestOps = (*Backend)(nil)

// The sizes of kernel/best.cu.
const (
	bestChunk   = 1024
	bestThreads = 256
	keyBytes    = 8
	chunkSums   = 4  // floats of a chunk
	rowSums     = 4  // and of a row, before the logits of its keys
	maxBest     = 64 // a small part of a chunk, so that rounds are few
)

// MaxBest is the most logits of a row that BestLogits chooses.
func (b *Backend) MaxBest() int { return maxBest }

// BestLogits is Logits of which only the k largest of each row leave the device, once
// those that its choice names are penalised.
func (b *Backend) BestLogits(x model.Tensor, n model.Norm, w model.Matrix, k int, choices []model.Choice) ([]model.Best, error) {
	rows, width := len(b.step.logits), w.Rows()
	if rows == 0 {
		_, err := b.flush(0, 0)
		return nil, err
	}
	logits := b.logits(x, n, w)
	k = min(k, width)
	all, err := b.flush(b.choose(logits, rows, width, k, choices), rows*bestBytes(k))
	if err != nil {
		return nil, err
	}
	b.bestWidth = width
	return b.readBest(all, rows, k), nil
}

// BestRow fetches a row of the logits of the last step, which are there until the next.
func (b *Backend) BestRow(row int) ([]float32, error) {
	n := 4 * b.bestWidth
	err := b.device.Do(func() error {
		err := growPinned(&b.results, n)
		if err == nil {
			err = b.stream.Download(b.results, b.output.ptr+cudrv.Ptr(row*n), n)
		}
		// Also after an error, so that nothing is in flight.
		return errors.Join(err, b.stream.Synchronize())
	})
	if b.tellLost(err); err != nil {
		return nil, err
	}
	return floatsOf(b.results.Bytes()[:n]), nil
}

// bestBytes is what choose leaves of a row.
func bestBytes(k int) int { return k*keyBytes + 4*(rowSums+k) }

// choose reduces rows of logits to k keys each, followed by the sums of each row and the
// logits of its keys, and returns where they are. Its launches are the same whatever the
// choices are: they are staged last, so that nothing comes to lie elsewhere for them.
func (b *Backend) choose(logits cudrv.Ptr, rows, width, k int, choices []model.Choice) cudrv.Ptr {
	chunks := ceil(width, bestChunk)
	sums := b.reserve(&b.sums, 4*int64(rows)*int64(chunks)*chunkSums)
	by, ids := b.stageChoices(choices)
	from, left := cudrv.Ptr(0), width
	for i := 0; ; i = 1 - i {
		n := ceil(left, bestChunk)
		to := b.reserve(&b.keys[i], int64(rows)*int64(n*k*keyBytes+4*(rowSums+k)))
		b.launch(b.kernels["best_logits"], cudrv.Grid{X: n, Y: rows, Z: 1, Threads: bestThreads, Shared: bestChunk * keyBytes}).
			ptrs(to, sums, logits, from, by, ids).ints(left, k)
		if n == 1 {
			b.launch(b.kernels["join_sums"], cudrv.Grid{X: rows, Y: 1, Z: 1, Threads: 32}).
				ptrs(to+cudrv.Ptr(rows*k*keyBytes), sums, logits, to, by).ints(chunks, width, k)
			return to
		}
		from, left = to, n*k
	}
}

// stageChoices stages kernel/best.cu's choice of each row, and the tokens they name.
func (b *Backend) stageChoices(choices []model.Choice) (by, ids cudrv.Ptr) {
	b.choices, b.seen = b.choices[:0], b.seen[:0]
	for i := range choices {
		c := &choices[i]
		b.choices = append(b.choices, int32(len(b.seen)), int32(len(c.Seen)), int32(math.Float32bits(c.Penalty)), int32(math.Float32bits(c.Scale)))
		b.seen = append(b.seen, c.Seen...)
	}
	b.seen = roomy(b.seen)
	return stage(b, b.choices), stage(b, b.seen)
}

// readBest reads what choose left.
func (b *Backend) readBest(all []byte, rows, k int) []model.Best {
	b.best = slices.Grow(b.best[:0], rows)[:rows]
	floats := floatsOf(all[rows*k*keyBytes:])
	for r := range b.best {
		best := &b.best[r]
		best.IDs, best.Logits = best.IDs[:0], best.Logits[:0]
		for i := range k {
			key := binary.LittleEndian.Uint64(all[(r*k+i)*keyBytes:])
			best.IDs = append(best.IDs, int32(^uint32(key)))
			best.Logits = append(best.Logits, logitOf(uint32(key>>32)))
		}
		row := floats[r*(rowSums+k):][:rowSums+k]
		best.LogSum = float64(row[0]) + math.Log(float64(row[1]))
		best.Sum = float64(row[3])
		best.Raw = append(best.Raw[:0], row[rowSums:]...)
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
