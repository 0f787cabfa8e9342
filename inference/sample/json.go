package sample

import "math"

// JSON is the grammar of one JSON object (response format json_object). Only
// when the object is closed, and then only, the end of generation may come.
type JSON struct {
	vocab   *Vocabulary
	pieces  func(id int32) []byte
	state   jsonState
	allowed []uint64
	path    []jsonState // states after each byte of the token being tried
}

// NewJSON starts the grammar over a vocabulary; piece is the function that the
// vocabulary was made with.
func NewJSON(v *Vocabulary, piece func(id int32) []byte) *JSON {
	return &JSON{vocab: v, pieces: piece, allowed: make([]uint64, (v.size+63)/64), path: make([]jsonState, v.longer+1)}
}

// Mask rules out every token that cannot continue the object.
func (j *JSON) Mask(logits []float32) {
	clear(j.allowed)
	if j.state.mode == atEnd {
		for _, id := range j.vocab.end {
			j.allow(id)
		}
	} else {
		j.try(j.vocab.others)
		if j.state.mode == inString {
			for i := range j.vocab.plain {
				j.allow(j.vocab.plain[i].id)
			}
		} else {
			j.try(j.vocab.plain)
		}
	}
	for i := range logits {
		if i >= j.vocab.size || j.allowed[i/64]>>(i%64)&1 == 0 {
			logits[i] = float32(math.Inf(-1))
		}
	}
}

// Accept moves on by a token. Tokens that Mask ruled out change nothing.
func (j *JSON) Accept(id int32) {
	if id < 0 || int(id) >= j.vocab.size {
		return
	}
	next := j.state
	for _, c := range j.pieces(id) {
		if !next.step(c) {
			return
		}
	}
	j.state = next
}

// Done reports whether the object is closed.
func (j *JSON) Done() bool { return j.state.mode == atEnd }

func (j *JSON) allow(id int32) {
	if id >= 0 && int(id) < j.vocab.size {
		j.allowed[id/64] |= 1 << (id % 64)
	}
}

// try allows the entries whose bytes can all follow. good is how many leading
// bytes of the entry before could.
func (j *JSON) try(entries []entry) {
	j.path[0] = j.state
	good := 0
	for i := range entries {
		e := &entries[i]
		if e.common > good {
			continue // it shares the byte that failed
		}
		good = e.common
		for good < len(e.piece) {
			next := j.path[good]
			if !next.step(e.piece[good]) {
				break
			}
			good++
			j.path[good] = next
		}
		if good == len(e.piece) {
			j.allow(e.id)
		}
	}
}
