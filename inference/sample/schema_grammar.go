package sample

import (
	"slices"
)

// SchemaGrammar holds an answer to a schema. Only when the value is complete may
// the end of generation come.
type SchemaGrammar struct {
	vocab   *Vocabulary
	pieces  func(id int32) []byte
	now     []thread
	allowed tokenSet
	path    [][]thread // positions after each byte of the token being tried
	full    int        // work that a mask may take with all positions
	work    int        // what is left of it
}

var _ Grammar = (*SchemaGrammar)(nil)

const (
	// maxThreads bounds the positions kept side by side. Leaving some out rules out
	// valid answers, never lets an invalid one through.
	maxThreads = 128
	// A mask may take as much work as maskWork walks over the whole vocabulary with one
	// position. When a schema takes more, the tokens that are left are tried at the first
	// position only: everybody's answers wait for a mask.
	maskWork, leastWork = 4, 1 << 18
)

// NewSchemaGrammar starts a grammar over a vocabulary; piece is the function that
// the vocabulary was made with.
func NewSchemaGrammar(v *Vocabulary, piece func(id int32) []byte, s *Schema) *SchemaGrammar {
	return &SchemaGrammar{
		vocab: v, pieces: piece, now: []thread{{mode: tValue, n: s.root}},
		allowed: newTokenSet(v.size), path: make([][]thread, v.longer+1),
		full: max(maskWork*(len(v.plain)+len(v.others)), leastWork),
	}
}

// Mask rules out every token that cannot go on.
func (g *SchemaGrammar) Mask(logits []float32) {
	g.allowed.clear()
	if g.Done() {
		for _, id := range g.vocab.end {
			g.allowed.add(id)
		}
	}
	g.path[0], g.work = append(g.path[0][:0], g.now...), g.full
	g.vocab.allow(&g.allowed, slices.ContainsFunc(g.now, thread.roomy), g.step)
	g.allowed.mask(logits)
}

// roomy reports a string in which any plain text may stand.
func (t thread) roomy() bool {
	return t.mode == tString && t.text.mode == inString && t.n.max == unlimited
}

// Accept moves on by a token. Tokens that Mask ruled out change nothing.
func (g *SchemaGrammar) Accept(id int32) {
	if id < 0 || int(id) >= g.vocab.size {
		return
	}
	now := g.now
	for _, c := range g.pieces(id) {
		now = advance(nil, now, c, maxThreads)
	}
	if len(now) > 0 {
		g.now = now
	}
}

// Done reports whether the value may end here.
func (g *SchemaGrammar) Done() bool { return slices.ContainsFunc(g.now, thread.complete) }

// advance appends to dst, which is empty, the positions after byte c: each once, and the
// first of them where there are more than most.
func advance(dst, now []thread, c byte, most int) []thread {
	for i := range now {
		old := len(dst)
		dst = now[i].step(c, dst)
		added := dst[old:]
		dst = dst[:old]
		for j := range added {
			if len(dst) < most && !held(dst, &added[j]) {
				dst = append(dst, added[j])
			}
		}
	}
	return dst
}

func held(list []thread, t *thread) bool {
	for i := range list {
		if list[i].same(t) {
			return true
		}
	}
	return false
}

// step reads a byte behind those before it.
func (g *SchemaGrammar) step(depth int, c byte) bool {
	now, most := g.path[depth], maxThreads
	if g.work <= 0 {
		now, most = now[:1], 1
	}
	next := advance(g.path[depth+1][:0], now, c, most)
	g.path[depth+1] = next
	for i := range now {
		g.work -= now[i].ways()
	}
	// Each new position was compared with those before it, which is quick.
	g.work -= len(next) * len(next) / 16
	return len(next) > 0
}
