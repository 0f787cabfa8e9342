package tokenizer

import "fmt"

// templatePart is a token or one of the two texts, A and B.
type templatePart struct {
	Special  *templateID `json:"SpecialToken"`
	Sequence *templateID `json:"Sequence"`
}

type templateID struct {
	ID   string `json:"id"`
	Type int    `json:"type_id"`
}

type templateToken struct {
	IDs []int32 `json:"ids"`
}

// processorToken is ["</s>", 2].
type processorToken [2]any

// applyTemplate sets what the post-processor puts around a single text: at most
// one token on each side. Those tokens take the roles of BOS and EOS.
func (f *jsonFile) applyTemplate(s *Special) error {
	for _, p := range f.file.PostProcessor.parts() {
		before, after := int32(-1), int32(-1)
		var err error
		switch p.Type {
		case "ByteLevel":
			continue
		case "TemplateProcessing":
			before, after, err = p.around()
			s.Pair = p.joint()
		case "BertProcessing":
			before, after = p.Cls.id(), p.Sep.id()
			s.Pair = bertJoint(before, after)
		case "RobertaProcessing":
			before, after = p.Cls.id(), p.Sep.id()
			s.Pair = robertaJoint(before, after, after)
		default:
			err = fmt.Errorf("%w: post-processor %s", ErrUnsupported, p.Type)
		}
		if err != nil {
			return err
		}
		if s.AddBOS = before >= 0; s.AddBOS {
			s.BOS = before
		}
		if s.AddEOS = after >= 0; s.AddEOS {
			s.EOS = after
		}
	}
	return nil
}

func (t processorToken) id() int32 {
	n, ok := t[1].(float64)
	if !ok || n < 0 || n > 1<<30 {
		return -1
	}
	return int32(n)
}

// around is the token before and the one behind the text of a template, -1 for
// none.
func (c *component) around() (before, after int32, err error) {
	before, after = -1, -1
	side := &before
	for _, part := range c.Single {
		if part.Special == nil {
			side = &after
			continue
		}
		token, ok := c.SpecialTokens[part.Special.ID]
		if !ok || len(token.IDs) != 1 || *side >= 0 {
			return -1, -1, fmt.Errorf("%w: post-processor template with %q", ErrUnsupported, part.Special.ID)
		}
		*side = token.IDs[0]
	}
	return before, after, nil
}
