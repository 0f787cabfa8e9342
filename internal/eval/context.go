package eval

// Context is what of a ranking reaches the prompt: chunks in its order, as many
// as fit, as the packer does it.
type Context struct {
	// Count counts a text in tokens of the answer model.
	Count func(text string) int
	// Tokens and Chunks bound the evidence.
	Tokens, Chunks int
}

// sizer knows the tokens of documents, each counted once.
type sizer struct {
	Context
	text map[string]string
	size map[string]int
}

func (c Context) sizes(list []Document) *sizer {
	s := &sizer{Context: c, text: make(map[string]string, len(list)), size: map[string]int{}}
	for _, d := range list {
		s.text[d.ID] = d.Text
		if d.Title != "" {
			s.text[d.ID] = d.Title + "\n" + d.Text
		}
	}
	return s
}

// fill returns the tokens of the documents that fit, one behind the other; one
// that is too long for what is left is passed over. 0 when nobody counts.
func (s *sizer) fill(ranking []string) int {
	if s.Count == nil {
		return 0
	}
	total, chunks := 0, 0
	for _, id := range ranking {
		if chunks == s.Chunks {
			break
		}
		n, known := s.size[id]
		if !known {
			n = s.Count(s.text[id])
			s.size[id] = n
		}
		if total+n <= s.Tokens {
			total += n
			chunks++
		}
	}
	return total
}
