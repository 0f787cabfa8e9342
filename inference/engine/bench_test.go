package engine_test

import (
	"context"
	"testing"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
)

// BenchmarkStep is what the engine itself costs for a token: eight answers
// side by side on a decoder that does nothing.
func BenchmarkStep(b *testing.B) {
	const running, answer = 8, 1000
	dec := &idle{Decoder: enginetest.NewDecoder(1024, 2048)}
	e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{MaxRunning: running})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close(context.Background())
	b.ReportAllocs()
	tokens := 0
	for b.Loop() {
		var streams [running]*engine.Stream
		for i := range streams {
			r := request("a question", answer)
			r.IgnoreEOS = true
			if streams[i], err = e.Submit(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
		for _, s := range streams {
			for {
				event, err := s.Next(b.Context())
				if err != nil {
					break
				}
				if done, ok := event.(engine.Done); ok {
					tokens += done.Usage.OutputTokens
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tokens), "ns/token")
}

// idle is a decoder that gives the same logits for everything.
type idle struct {
	*enginetest.Decoder
	rows   [][]float32
	logits [enginetest.Vocabulary]float32
}

func (d *idle) Forward(b model.Batch) ([][]float32, error) {
	d.rows = d.rows[:0]
	for _, piece := range b {
		for range piece.Logits {
			d.rows = append(d.rows, d.logits[:])
		}
	}
	return d.rows, nil
}
