package prompt

// Tokenize encodes segments one by one, scaffold with control tokens and
// content without, into one row of ids. perPart says how many of them each
// part cost; the counts add up to len(ids). Each segment is encoded behind the
// ids before it, so a tokenizer that puts a space before the first word after
// a control token sees what it follows.
func Tokenize(segments []Segment, tok Tokenizer) (ids []int32, perPart map[Part]int) {
	perPart = map[Part]int{}
	for _, s := range segments {
		before := len(ids)
		part := s.Part
		if s.Scaffold {
			ids = tok.EncodeScaffold(ids, s.Text)
			part = Part{Kind: Template}
		} else {
			ids = tok.Encode(ids, s.Text)
		}
		perPart[part] += len(ids) - before
	}
	return ids, perPart
}
