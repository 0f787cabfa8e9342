package tokenizer

import "slices"

// endSpellings are the control tokens that end an answer in the families at
// hand, whatever the file names as EOS: the end of a turn, of a message or of
// the text.
var endSpellings = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
	"<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
	"<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>",
	"<｜end▁of▁sentence｜>", "[e~[",
	"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<reponame>", "<|file_sep|>",
}

// noSpecial has no role filled.
func noSpecial() Special {
	return Special{BOS: -1, EOS: -1, UNK: -1, PAD: -1, CLS: -1, SEP: -1, MASK: -1}
}

// setEndOfGeneration collects EOS, extra (end of turn, end of message as the
// file names them) and what endSpellings finds among the control tokens; a
// spelling that is no control token is ordinary text and ends nothing.
func (v *vocabulary) setEndOfGeneration(extra ...int32) {
	found := map[int32]bool{}
	for _, id := range append(extra, v.special.EOS) {
		if id >= 0 && int(id) < len(v.spellings) {
			found[id] = true
		}
	}
	for _, s := range endSpellings {
		if id, ok := v.ids[s]; ok && v.Control(id) {
			found[id] = true
		}
	}
	v.dropHarmonyEnd(found)
	v.special.EndOfGeneration = make([]int32, 0, len(found))
	for id := range found {
		v.special.EndOfGeneration = append(v.special.EndOfGeneration, id)
	}
	slices.Sort(v.special.EndOfGeneration)
}

// dropHarmonyEnd takes <|end|> out where <|return|> and <|call|> (or <|calls|>
// and <|flush|>) exist: there it ends a channel, not the answer.
func (v *vocabulary) dropHarmonyEnd(found map[int32]bool) {
	has := func(s string) bool {
		id, ok := v.ids[s]
		return ok && found[id]
	}
	if has("<|end|>") && (has("<|call|>") || has("<|calls|>")) && (has("<|return|>") || has("<|flush|>")) {
		delete(found, v.ids["<|end|>"])
	}
}
