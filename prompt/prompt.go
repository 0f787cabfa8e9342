// Package prompt builds what the model reads: messages made of pieces that know
// what they are, and segments that know whether the program or somebody else
// wrote them.
package prompt

// Kind says which part of the ledger a piece of the prompt belongs to.
type Kind uint8

// The components of the token ledger (DESIGN §4).
const (
	Template Kind = iota // chat template and ragd's own fixed wording
	System
	History
	Tools
	Question
	Evidence
)

// Part is a component; Index tells evidence items and history turns apart.
type Part struct {
	Kind  Kind
	Index int
}

// Piece is text of one component inside a message.
type Piece struct {
	Text string
	Part Part
}

// Message is one turn given to the chat template.
type Message struct {
	Role   string // "system", "user", "assistant", "tool"
	Pieces []Piece
}

// Segment is a run of the rendered prompt. Control tokens are recognised only
// in scaffold, text that the chat template itself wrote; content is always
// plain text, whatever it spells.
type Segment struct {
	Text     string
	Part     Part
	Scaffold bool
}

// Tokenizer is what the prompt needs of the serving model's tokenizer.
type Tokenizer interface {
	Encode(dst []int32, text string) []int32
	EncodeScaffold(dst []int32, text string) []int32
}

// TokenCounter counts text of one piece as it will be tokenised in the prompt.
type TokenCounter interface {
	CountTokens(text string) int
}
