//go:build cuda && cgo

package cuda

import (
	"context"
	"math"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/encode"
	"ragd/inference/model"
	"ragd/internal/testenv"
)

func openE5(t *testing.T, ops model.Ops) *encode.Encoder {
	t.Helper()
	e, err := encode.Open(context.Background(), testenv.Model(t, "multilingual-e5-small"), ops, encode.Config{})
	if err != nil {
		ops.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// Embeddings on the device are the CPU engine's, for texts of several lengths in one
// step.
func TestE5EmbedsAsTheCPU(t *testing.T) {
	texts := []string{
		"Where is the nearest library?",
		"The reading room closes at six on weekdays, and the archive is open by appointment only.",
		"도서관은 평일 아홉 시에 문을 엽니다.",
		"Ships that carry grain through the strait wait for a pilot, and in winter the wait can last two days when fog covers the harbour and the lights along the breakwater cannot be seen.",
	}
	onCPU, err := openE5(t, newCPU(t, cpu.Config{})).EmbedPassages(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	device, err := openE5(t, newBackend(t)).EmbedPassages(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range texts {
		c := cosine(onCPU[i].Vector, device[i].Vector)
		t.Logf("text %d: cosine %.6f", i, c)
		if !(c >= 0.9999) {
			t.Errorf("text %d: cosine %g", i, c)
		}
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}
