// Package tokenizer turns text into token ids and token ids into bytes:
// byte-level BPE, SentencePiece BPE with byte fallback, SentencePiece unigram
// and WordPiece.
package tokenizer

// Tokenizer is one vocabulary with its rules. It is safe for concurrent use.
type Tokenizer interface {
	// Encode appends the ids of plain text to dst. The spelling of a control
	// token inside text is ordinary text, and no BOS or EOS is added.
	// A SentencePiece vocabulary that puts a space before the first word does so
	// when dst is empty or ends in a control token.
	Encode(dst []int32, text string) []int32
	// EncodeScaffold is Encode for text the program itself wrote (a chat
	// template): control tokens spelt out in it become those tokens.
	EncodeScaffold(dst []int32, text string) []int32
	// Piece is the bytes a token stands for in running text: none for a control
	// token, possibly part of a character for others. The caller must not
	// change them.
	Piece(id int32) []byte
	// Control reports whether id is a control token.
	Control(id int32) bool
	// ID finds a token by its spelling in the vocabulary.
	ID(spelling string) (int32, bool)
	// Size is the number of ids in the vocabulary.
	Size() int
	// Special names the ids with a role.
	Special() Special
}

// Special holds the ids that have a role; -1 where the vocabulary has none.
type Special struct {
	BOS, EOS, UNK, PAD, CLS, SEP, MASK int32
	// AddBOS and AddEOS say whether a raw sequence (no chat template) starts
	// with BOS and ends with EOS.
	AddBOS, AddEOS bool
	// Pair is how two texts become one sequence; nil where the vocabulary does
	// not say.
	Pair *Joint
	// EndOfGeneration are the ids that end an answer (EOS, end of turn).
	EndOfGeneration []int32
}
