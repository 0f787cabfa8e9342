package ingest

import (
	"context"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longEmbedder takes texts of any length: one that is too long for the model is
// halved between words until its parts fit, and its vector is the mean of theirs.
type longEmbedder struct{ Embedder }

// MaxTokens implements Embedder.
func (l *longEmbedder) MaxTokens() int { return math.MaxInt }

// CountPassage implements TokenCounter: the sum over the parts.
func (l *longEmbedder) CountPassage(text string) int {
	n := 0
	for _, p := range l.parts(text) {
		n += l.Embedder.CountPassage(p)
	}
	return n
}

// EmbedPassages implements Embedder.
func (l *longEmbedder) EmbedPassages(ctx context.Context, texts []string) ([]Embedding, error) {
	var flat []string
	ends := make([]int, len(texts))
	for i, t := range texts {
		flat = append(flat, l.parts(t)...)
		ends[i] = len(flat)
	}
	list, err := l.Embedder.EmbedPassages(ctx, flat)
	if err != nil {
		return nil, err
	}
	out, start := make([]Embedding, len(texts)), 0
	for i, end := range ends {
		out[i] = meanOf(list[start:end])
		start = end
	}
	return out, nil
}

func (l *longEmbedder) parts(text string) []string {
	at := middle(text)
	if l.Embedder.CountPassage(text) <= l.Embedder.MaxTokens() || at == 0 || at == len(text) {
		return []string{text}
	}
	var out []string
	for _, half := range []string{text[:at], text[at:]} {
		if half = strings.TrimSpace(half); half != "" {
			out = append(out, l.parts(half)...)
		}
	}
	return out
}

// middle is the space nearest behind the middle of text, or, where there is none
// close by, a character's border.
func middle(text string) int {
	half := len(text) / 2
	for half > 0 && !utf8.RuneStart(text[half]) {
		half--
	}
	if i := strings.IndexFunc(text[half:half+len(text)/4], unicode.IsSpace); i > 0 {
		return half + i
	}
	return half
}

func meanOf(parts []Embedding) Embedding {
	if len(parts) == 1 {
		return parts[0]
	}
	out := Embedding{Vector: make([]float32, len(parts[0].Vector))}
	for _, p := range parts {
		out.Tokens += p.Tokens
		for i, x := range p.Vector {
			out.Vector[i] += x
		}
	}
	var sum float64
	for _, x := range out.Vector {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return Embedding{Vector: parts[0].Vector, Tokens: out.Tokens}
	}
	for i := range out.Vector {
		out.Vector[i] /= float32(math.Sqrt(sum))
	}
	return out
}
