package answer

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"ragd/prompt"
	"ragd/prompt/chat"
	"ragd/telemetry"
)

// The values of Config.Rewrite.
const (
	// RewriteAuto is RewriteModel, but RewriteWords where the model is small or a time
	// to first token was asked for.
	RewriteAuto = "auto"
	// RewriteModel lets the answer model write the question anew.
	RewriteModel = "model"
	// RewriteWords searches with the user's turn before as well.
	RewriteWords = "words"
	RewriteOff   = "off"
)

const (
	// rewriteTokens is the longest rewriting.
	rewriteTokens = 64
	// rewriteTurns is how many turns of the history it is made from, and rewriteRunes
	// how much of each message, from its start.
	rewriteTurns, rewriteRunes = 3, 400
	// rewriteGrowth bounds the rewriting in times of the longest question it is made
	// from: a model that goes on to answer writes more.
	rewriteGrowth = 3
)

// rewriteStop ends the rewriting: the question is one line.
var rewriteStop = []string{"\n\n"}

// standalone is the question as it is searched for. Without a history it is the
// question itself. The prompt keeps the user's own words in any case.
func (a *asking) standalone(ctx context.Context) (text string, err error) {
	method := a.rewriteMethod()
	before := a.earlier()
	if method == RewriteOff || before == "" {
		return a.req.Question, nil
	}
	ctx, end := a.rec.Begin(ctx, telemetry.StageRewrite, a.Generator.Model().Name)
	defer func() { end(err) }()
	r := &Rewrite{Method: RewriteWords, Query: before + "\n" + a.req.Question}
	if method == RewriteModel {
		if err := a.rewriteByModel(ctx, r); err != nil {
			return "", err
		}
	}
	a.res.Usage.Rewrite = r
	return r.Query, nil
}

func (a *asking) rewriteMethod() string {
	switch m := a.cfg.Rewrite; {
	case m != RewriteAuto && m != "":
		return m
	case a.Generator.Model().Small, !a.Generator.Model().Speaks(language(a.req.Question)), a.req.budget().TTFTMS != nil:
		return RewriteWords
	}
	return RewriteModel
}

// earlier is the user's last question before this one.
func (a *asking) earlier() string {
	for i := len(a.req.History) - 1; i >= 0; i-- {
		if t := a.req.History[i]; t.Role == "user" && !blank(t.Content) {
			return front(strings.TrimSpace(t.Content), rewriteRunes)
		}
	}
	return ""
}

// front is the first n characters.
func front(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

// rewriteByModel replaces the query of r by the model's. What the model cannot do,
// for want of room or of a place in the queue, the words already there do.
func (a *asking) rewriteByModel(ctx context.Context, r *Rewrite) error {
	tokens, messages, err := a.rewritePrompt()
	if err != nil {
		return err
	}
	if len(tokens)+rewriteTokens > a.Generator.Model().Window {
		return nil
	}
	text, gen, err := a.callToRewrite(ctx, Generation{
		Tokens: tokens, Messages: messages, MaxTokens: rewriteTokens, Stop: rewriteStop,
		Sampling: SamplingParams{TopP: 1, RepetitionPenalty: 1},
	})
	r.InputTokens, r.OutputTokens, r.CachedTokens = or(positive(gen.InputTokens), len(tokens)), gen.OutputTokens, gen.CachedTokens
	a.machine.add(gen.Machine)
	if err != nil {
		if AsError(err).Code == Busy {
			r.InputTokens = 0
			return nil
		}
		return err
	}
	if q := a.cleaned(text); q != "" && gen.FinishReason != "length" {
		r.Method, r.Query = RewriteModel, q
	}
	return nil
}

// callToRewrite runs the model in a span of its own: it is a call to a model like that
// for the answer.
func (a *asking) callToRewrite(ctx context.Context, g Generation) (text string, gen Generated, err error) {
	m := a.Generator.Model()
	ctx, end := a.rec.Chat(ctx, m.Name, m.Server)
	defer func() {
		u := Usage{InputTokens: len(g.Tokens), OutputTokens: gen.OutputTokens, CachedTokens: gen.CachedTokens}
		u.counted(gen.InputTokens)
		end(u.call(gen.FinishReason), err)
	}()
	var b strings.Builder
	gen, err = a.Generator.Generate(ctx, g, func(e Event) { b.WriteString(e.Text) })
	return b.String(), gen, err
}

// cleaned is what the model wrote, without quotes and labels around it; "" for what
// can be no question: nothing, or far more than was asked.
func (a *asking) cleaned(text string) string {
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n")
	first = strings.Trim(strings.TrimSpace(first), "\"'“”‘’`")
	for _, label := range rewriteLabels {
		if rest, ok := strings.CutPrefix(first, label); ok {
			first = strings.Trim(strings.TrimSpace(rest), "\"'“”‘’`")
		}
	}
	longest := max(len(a.earlier()), len(a.req.Question))
	if blank(first) || utf8.RuneCountInString(first) < 2 || len(first) > rewriteGrowth*longest {
		return ""
	}
	return first
}

// rewriteLabels are what models write before the question.
var rewriteLabels = []string{"Standalone question:", "Question:", "독립된 질문:", "질문:"}

// rewriteWording is the order to the model in one language.
type rewriteWording struct{ rules, user, assistant, last, ask string }

var (
	rewriteEnglish = rewriteWording{
		rules: "Rewrite the last question so that it can be understood without the conversation: put names in place of words like it, they or that. " +
			"Keep its language and its meaning. Do not answer it. Reply with the question alone, on one line.",
		user: "User: ", assistant: "Assistant: ", last: "Last question: ", ask: "Standalone question:",
	}
	rewriteKorean = rewriteWording{
		rules: "마지막 질문을 앞의 대화 없이도 이해할 수 있게 다시 쓰세요. '그것', '거기', '그 사람' 같은 말과 생략된 말은 이름으로 바꾸세요. " +
			"언어와 뜻은 그대로 두세요. 답하지 말고 질문만 한 줄로 쓰세요.",
		user: "사용자: ", assistant: "도우미: ", last: "마지막 질문: ", ask: "독립된 질문:",
	}
)

// rewritePrompt is the rendered order with the end of the conversation, and the messages
// that it was rendered from. All of the conversation is content: it can never become
// control tokens.
func (a *asking) rewritePrompt() ([]int32, []prompt.Message, error) {
	w := rewriteEnglish
	if language(a.req.Question) == "ko" {
		w = rewriteKorean
	}
	var b strings.Builder
	for _, turn := range a.history[max(0, len(a.history)-rewriteTurns):] {
		for _, u := range turn {
			label := w.user
			if u.Role == "assistant" {
				label = w.assistant
			}
			b.WriteString(label + front(strings.Join(strings.Fields(u.Text), " "), rewriteRunes) + "\n")
		}
	}
	b.WriteString("\n" + w.last + strings.TrimSpace(a.req.Question) + "\n" + w.ask)
	piece := func(text string) []prompt.Piece { return []prompt.Piece{{Text: text}} }
	messages := []prompt.Message{{Role: "system", Pieces: piece(w.rules)}, {Role: "user", Pieces: piece(b.String())}}
	segments, err := a.Template.Render(chat.Input{Messages: messages, AddGenerationPrompt: true, BOS: a.cfg.BOS, EOS: a.cfg.EOS, Now: time.Now()})
	if err != nil {
		return nil, nil, err
	}
	ids, _ := a.tokenize(segments)
	return ids, messages, nil
}

// support is the vector by which sentences are chosen. Where the words of the question
// before are in the vector of the search, the sentences that answered that one would
// win; the question's own words choose then.
func (a *asking) support(ctx context.Context, search []float32) ([]float32, error) {
	if r := a.res.Usage.Rewrite; r == nil || r.Method != RewriteWords {
		return search, nil
	}
	own, _, err := a.embed(ctx, a.req.Question)
	return own, err
}
