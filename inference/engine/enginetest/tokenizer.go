package enginetest

import "ragd/inference/tokenizer"

// The ids after the 256 bytes, and the number of all.
const (
	BOS        int32 = 256
	EOS        int32 = 257
	Vocabulary       = 258
)

// Tokenizer has a token for each byte, BOS and EOS.
type Tokenizer struct{}

var _ tokenizer.Tokenizer = Tokenizer{}

// Encode appends the bytes of text.
func (Tokenizer) Encode(dst []int32, text string) []int32 {
	for i := range len(text) {
		dst = append(dst, int32(text[i]))
	}
	return dst
}

// EncodeScaffold is Encode: no control token has a spelling in text.
func (t Tokenizer) EncodeScaffold(dst []int32, text string) []int32 { return t.Encode(dst, text) }

// Piece is the byte, or nothing.
func (Tokenizer) Piece(id int32) []byte {
	if id < 0 || id > 255 {
		return nil
	}
	return []byte{byte(id)}
}

// Control reports BOS and EOS.
func (Tokenizer) Control(id int32) bool { return id == BOS || id == EOS }

// ID finds a byte, "<bos>" or "<eos>".
func (Tokenizer) ID(spelling string) (int32, bool) {
	switch {
	case spelling == "<bos>":
		return BOS, true
	case spelling == "<eos>":
		return EOS, true
	case len(spelling) == 1:
		return int32(spelling[0]), true
	}
	return 0, false
}

// Size is 258.
func (Tokenizer) Size() int { return Vocabulary }

// Special has BOS and EOS.
func (Tokenizer) Special() tokenizer.Special {
	return tokenizer.Special{
		BOS: BOS, EOS: EOS, UNK: -1, PAD: -1, CLS: -1, SEP: -1, MASK: -1,
		EndOfGeneration: []int32{EOS},
	}
}

// Reciter is a Decoder.Next that goes on with text after any prompt of the
// given length, then ends the answer.
func Reciter(prompt int, text string) func([]int32) int32 {
	return func(tokens []int32) int32 {
		if i := len(tokens) - prompt; i < len(text) {
			return int32(text[i])
		}
		return EOS
	}
}
