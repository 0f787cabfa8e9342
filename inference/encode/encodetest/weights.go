package encodetest

import (
	"fmt"
	"math"
)

// part is a tensor under GGUF's name; what it holds follows from the name.
type part struct {
	name string
	dims []int // rows and columns, or one length
	fill fill
}

// fill maps noise in [-1, 1) to the values of a tensor of cols columns.
type fill func(x float32, cols int) float32

func plain(x float32, _ int) float32 { return x }

func gain(x float32, _ int) float32 { return 1 + x/2 }

func matrix(x float32, cols int) float32 {
	return x * float32(2/math.Sqrt(float64(cols)))
}

// values are the tensor's.
func (p part) values() []float32 {
	n := 1
	for _, d := range p.dims {
		n *= d
	}
	out, cols := noise(p.name, n), p.dims[len(p.dims)-1]
	for i := range out {
		out[i] = p.fill(out[i], cols)
	}
	return out
}

// noise is splitmix64 over an FNV-1a hash of name, as the reference has it.
func noise(name string, n int) []float32 {
	seed := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		seed = (seed ^ uint64(c)) * 1099511628211
	}
	out := make([]float32, n)
	for i := range out {
		z := seed + uint64(i+1)*0x9E3779B97F4A7C15
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		z ^= z >> 31
		out[i] = float32(float64(z>>40)/(1<<23) - 1)
	}
	return out
}

// parts lists the tensors of a model with the head that m asks for.
func (m Model) parts(vocab, types int) []part {
	width, feedForward := m.Shape.Width, m.Shape.FeedForward
	list := []part{
		{"token_embd.weight", []int{vocab, width}, plain},
		{"position_embd.weight", []int{m.Shape.Context, width}, plain},
		{"token_types.weight", []int{types, width}, plain},
	}
	list = append(list, norm("token_embd_norm", width)...)
	for i := range m.Shape.Layers {
		p := fmt.Sprintf("blk.%d.", i)
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			list = append(list, linear(p+name, width, width)...)
		}
		list = append(list, linear(p+"ffn_up", feedForward, width)...)
		list = append(list, linear(p+"ffn_down", width, feedForward)...)
		list = append(list, norm(p+"attn_output_norm", width)...)
		list = append(list, norm(p+"layer_output_norm", width)...)
	}
	if m.Head == FullHead {
		list = append(list, linear("cls", width, width)...)
	}
	if m.Head != NoHead {
		list = append(list, linear("cls.output", max(m.Labels, 1), width)...)
	}
	return list
}

func linear(name string, rows, cols int) []part {
	return []part{{name + ".weight", []int{rows, cols}, matrix}, {name + ".bias", []int{rows}, plain}}
}

func norm(name string, width int) []part {
	return []part{{name + ".weight", []int{width}, gain}, {name + ".bias", []int{width}, plain}}
}
