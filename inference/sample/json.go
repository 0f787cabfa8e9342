package sample

// JSON is the grammar of one JSON object (response format json_object). Only
// when the object is closed, and then only, the end of generation may come.
type JSON struct {
	vocab   *Vocabulary
	pieces  func(id int32) []byte
	state   jsonState
	allowed tokenSet
	path    []jsonState // states after each byte of the token being tried
}

// NewJSON starts the grammar over a vocabulary; piece is the function that the
// vocabulary was made with.
func NewJSON(v *Vocabulary, piece func(id int32) []byte) *JSON {
	return &JSON{vocab: v, pieces: piece, allowed: newTokenSet(v.size), path: make([]jsonState, v.longer+1)}
}

// Mask rules out every token that cannot continue the object.
func (j *JSON) Mask(logits []float32) {
	j.allowed.clear()
	if j.state.mode == atEnd {
		for _, id := range j.vocab.end {
			j.allowed.add(id)
		}
	} else {
		j.path[0] = j.state
		j.vocab.allow(&j.allowed, j.state.mode == inString, j.step)
	}
	j.allowed.mask(logits)
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

// step reads a byte behind those before it.
func (j *JSON) step(depth int, c byte) bool {
	next := j.path[depth]
	ok := next.step(c)
	j.path[depth+1] = next
	return ok
}
