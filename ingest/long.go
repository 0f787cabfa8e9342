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
	flat, ends := l.flatten(texts)
	list, err := l.Embedder.EmbedPassages(ctx, flat)
	if err != nil {
		return nil, err
	}
	return gathered(list, ends, 0), nil
}

// EmbedPassageStates implements StateEmbedder where the embedder within is one. The
// states of a long text are those of its parts, one after the other up to the limit.
func (l *longEmbedder) EmbedPassageStates(ctx context.Context, texts []string, wanted []bool, limit int) ([]Embedding, error) {
	inner, ok := l.Embedder.(StateEmbedder)
	if !ok {
		return nil, ErrStates
	}
	flat, ends := l.flatten(texts)
	each := make([]bool, 0, len(flat))
	for i, end := range ends {
		for len(each) < end {
			each = append(each, wanted[i])
		}
	}
	list, err := inner.EmbedPassageStates(ctx, flat, each, limit)
	if err != nil {
		return nil, err
	}
	return gathered(list, ends, limit), nil
}

// flatten lists the parts of all texts, and where those of each text end.
func (l *longEmbedder) flatten(texts []string) (flat []string, ends []int) {
	ends = make([]int, len(texts))
	for i, t := range texts {
		flat = append(flat, l.parts(t)...)
		ends[i] = len(flat)
	}
	return flat, ends
}

// gathered makes one embedding of the parts of each text, with at most limit token
// states.
func gathered(parts []Embedding, ends []int, limit int) []Embedding {
	out, start := make([]Embedding, len(ends)), 0
	for i, end := range ends {
		own := parts[start:end]
		out[i] = meanOf(own)
		if own[0].States != nil {
			out[i].States = joined(own, limit)
		}
		start = end
	}
	return out
}

func joined(parts []Embedding, limit int) *States {
	out := &States{}
	for _, p := range parts {
		n := min(p.States.Tokens(), limit-out.Tokens())
		if n == 0 {
			break
		}
		dim := len(p.States.Values) / p.States.Tokens()
		out.Scales = append(out.Scales, p.States.Scales[:n]...)
		out.Values = append(out.Values, p.States.Values[:n*dim]...)
	}
	return out
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
