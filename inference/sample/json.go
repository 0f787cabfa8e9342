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
		j.try(j.vocab.others)
		if j.state.mode == inString {
			for i := range j.vocab.plain {
				j.allowed.add(j.vocab.plain[i].id)
			}
		} else {
			j.try(j.vocab.plain)
		}
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
			j.allowed.add(e.id)
		}
	}
}
