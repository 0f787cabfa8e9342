package tokenizer

// SplitLengths is the bytes of each piece that a pre-tokenizer cuts text into,
// for the comparison with the reference.
func SplitLengths(name, text string) ([]int32, error) {
	split, err := newSplitter(name)
	if err != nil {
		return nil, err
	}
	var lengths []int32
	for text != "" {
		n := split(text)
		lengths = append(lengths, int32(n))
		text = text[n:]
	}
	return lengths, nil
}
