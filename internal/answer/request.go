package answer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Request is one question, as POST /ask takes it. Nil numbers mean the default.
type Request struct {
	Question   string `json:"question"`
	Collection string `json:"collection"`
	// Collections are searched as if they were one; then Collection is empty.
	Collections    []string        `json:"collections,omitempty"`
	History        []Turn          `json:"history"`
	ToolResults    []ToolResult    `json:"tool_results"`
	Filters        *Filters        `json:"filters"`
	TopK           *int            `json:"top_k"`
	MaxChunks      *int            `json:"max_chunks"`
	Budget         *Budget         `json:"budget"`
	Sampling       *Sampling       `json:"sampling"`
	ResponseFormat *ResponseFormat `json:"response_format"`
	AnswerMode     string          `json:"answer_mode"`
	Stream         bool            `json:"stream"`
	Explain        bool            `json:"explain"`
	// System is said to the model after the operator's own message; only a
	// conversation has it.
	System string `json:"-"`
	// Route is what the request came in by; RouteAsk when empty.
	Route Route `json:"-"`
}

func (r *Request) route() Route { return cmp.Or(r.Route, RouteAsk) }

// Turn is an earlier turn of the conversation.
type Turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// ToolResult is what a tool of the caller returned.
type ToolResult struct {
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Filters narrow the documents searched.
type Filters struct {
	PathPrefix string            `json:"path_prefix"`
	Metadata   map[string]Values `json:"metadata"`
}

// Values is one string or a list of them.
type Values []string

// UnmarshalJSON reads "a" as ["a"]. A null is refused: taken for "" it would match
// nothing in silence.
func (v *Values) UnmarshalJSON(data []byte) error {
	var one *string
	if json.Unmarshal(data, &one) == nil && one != nil {
		*v = Values{*one}
		return nil
	}
	var many []*string
	if err := json.Unmarshal(data, &many); err != nil || many == nil || slices.Contains(many, nil) {
		return invalid("filters.metadata", "a value is a string or a list of strings")
	}
	*v = make(Values, len(many))
	for i, s := range many {
		(*v)[i] = *s
	}
	return nil
}

// Detail is how much of a chunk is presented.
type Detail string

// The details.
const (
	DetailAuto      Detail = "auto"
	DetailChunks    Detail = "chunks"
	DetailSentences Detail = "sentences"
)

// Budget bounds tokens and time.
type Budget struct {
	// ContextTokens bounds the tokens of the evidence.
	ContextTokens *int `json:"context_tokens"`
	// AnswerTokens is reserved for the answer, which ends there.
	AnswerTokens *int   `json:"answer_tokens"`
	TTFTMS       *int   `json:"ttft_ms"`
	Detail       Detail `json:"detail"`
}

// Sampling chooses tokens; see inference/sample for the order.
type Sampling struct {
	Temperature       *float64 `json:"temperature"`
	TopP              *float64 `json:"top_p"`
	TopK              *int     `json:"top_k"`
	MinP              *float64 `json:"min_p"`
	RepetitionPenalty *float64 `json:"repetition_penalty"`
	Seed              *int64   `json:"seed"`
	Stop              []string `json:"stop"`
}

// Answer modes.
const (
	ModeAuto     = "auto"
	ModeGenerate = "generate"
	ModeExtract  = "extract"
)

// The bounds of a request. They are part of the API and stand in every error.
const (
	MaxQuestionBytes = 64 << 10
	MaxTopK          = 1000
	MaxChunksLimit   = 1000
	MaxContextTokens = 1 << 20
	MaxAnswerTokens  = 1 << 17
	MaxTTFTMS        = 3_600_000
	MaxHistoryTurns  = 1000
	MaxToolResults   = 100
	MaxStops         = 16
	MaxStopBytes     = 256
	MaxNameBytes     = 256
	MaxCollections   = 16
	MaxFilterKeys    = 64 // as many as a document can have
	MaxFilterValues  = 100
)

// Validate checks the request against its bounds; the error is an *Error with
// code invalid and the field's name.
func (r *Request) Validate() error {
	if err := r.validateCollections(); err != nil {
		return err
	}
	if err := r.validateText(); err != nil {
		return err
	}
	if err := r.validateNumbers(); err != nil {
		return err
	}
	if err := r.Filters.validate(); err != nil {
		return err
	}
	return r.validateChoices()
}

func (r *Request) validateText() error {
	switch {
	case blank(r.Question):
		return invalid("question", "is empty")
	case len(r.Question) > MaxQuestionBytes:
		return &Error{Code: TooLarge, Field: "question", Message: fmt.Sprintf("question: %d bytes, at most %d are allowed", len(r.Question), MaxQuestionBytes)}
	case len(r.History) > MaxHistoryTurns:
		return invalid("history", fmt.Sprintf("%d turns, at most %d are allowed", len(r.History), MaxHistoryTurns))
	case len(r.ToolResults) > MaxToolResults:
		return invalid("tool_results", fmt.Sprintf("%d results, at most %d are allowed", len(r.ToolResults), MaxToolResults))
	}
	if err := ValidateText("question", r.Question); err != nil {
		return err
	}
	for i, t := range r.History {
		if t.Role != "user" && t.Role != "assistant" {
			return invalid(fmt.Sprintf("history[%d].role", i), fmt.Sprintf("%q is not user or assistant", t.Role))
		}
		if err := ValidateText(fmt.Sprintf("history[%d].content", i), t.Content); err != nil {
			return err
		}
	}
	for i, t := range r.ToolResults {
		if err := ValidateText(fmt.Sprintf("tool_results[%d]", i), t.Name+t.Content); err != nil {
			return err
		}
	}
	return nil
}

// validateCollections fills in the default.
func (r *Request) validateCollections() error {
	switch {
	case r.Collections == nil && r.Collection == "":
		r.Collection = "default"
	case r.Collections == nil:
	case r.Collection != "":
		return invalid("collections", "give either collection or collections")
	case len(r.Collections) == 0 || len(r.Collections) > MaxCollections:
		return invalid("collections", fmt.Sprintf("%d names, 1 to %d are allowed", len(r.Collections), MaxCollections))
	}
	for i, name := range r.Collections {
		field := fmt.Sprintf("collections[%d]", i)
		if name == "" {
			return invalid(field, "is empty")
		}
		if err := validateName(field, name); err != nil {
			return err
		}
	}
	return validateName("collection", r.Collection)
}

// names are the collections that are searched.
func (r *Request) names() []string {
	if r.Collections != nil {
		return r.Collections
	}
	return []string{r.Collection}
}

// label is the collections as one word, for spans and logs.
func (r *Request) label() string { return strings.Join(r.names(), ",") }

func (r *Request) validateNumbers() error {
	b := r.budget()
	for _, n := range []struct {
		field       string
		value       *int
		least, most int
	}{
		{"top_k", r.TopK, 1, MaxTopK},
		{"max_chunks", r.MaxChunks, 1, MaxChunksLimit},
		{"budget.context_tokens", b.ContextTokens, 1, MaxContextTokens},
		{"budget.answer_tokens", b.AnswerTokens, 1, MaxAnswerTokens},
		{"budget.ttft_ms", b.TTFTMS, 1, MaxTTFTMS},
	} {
		if n.value != nil && (*n.value < n.least || *n.value > n.most) {
			return invalid(n.field, fmt.Sprintf("%d is not between %d and %d", *n.value, n.least, n.most))
		}
	}
	return r.sampling().validate()
}

// validate checks the numbers and stop strings; field names start with "sampling.".
func (s Sampling) validate() error {
	if s.TopK != nil && (*s.TopK < 0 || *s.TopK > math.MaxInt32) {
		return invalid("sampling.top_k", fmt.Sprintf("%d is not between 0 and %d", *s.TopK, math.MaxInt32))
	}
	for _, n := range []struct {
		field       string
		value       *float64
		least, most float64
	}{
		{"sampling.temperature", s.Temperature, 0, 10},
		{"sampling.top_p", s.TopP, 0, 1},
		{"sampling.min_p", s.MinP, 0, 1},
		{"sampling.repetition_penalty", s.RepetitionPenalty, 0.1, 10},
	} {
		if n.value != nil && !(*n.value >= n.least && *n.value <= n.most) {
			return invalid(n.field, fmt.Sprintf("%g is not between %g and %g", *n.value, n.least, n.most))
		}
	}
	if len(s.Stop) > MaxStops {
		return invalid("sampling.stop", fmt.Sprintf("%d strings, at most %d are allowed", len(s.Stop), MaxStops))
	}
	for i, stop := range s.Stop {
		field := fmt.Sprintf("sampling.stop[%d]", i)
		if stop == "" || len(stop) > MaxStopBytes {
			return invalid(field, fmt.Sprintf("%d bytes, it must have 1 to %d", len(stop), MaxStopBytes))
		}
		if err := ValidateText(field, stop); err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) validateChoices() error {
	switch r.AnswerMode {
	case "", ModeAuto, ModeGenerate, ModeExtract:
	default:
		return invalid("answer_mode", fmt.Sprintf("%q is not auto, generate or extract", r.AnswerMode))
	}
	switch d := r.budget().Detail; d {
	case "", DetailAuto, DetailChunks, DetailSentences:
	default:
		return invalid("budget.detail", fmt.Sprintf("%q is not auto, chunks or sentences", d))
	}
	if r.AnswerMode == ModeExtract && r.ResponseFormat.constrained() {
		return invalid("answer_mode", "extract quotes the documents, which response_format does not allow")
	}
	return r.ResponseFormat.validate()
}

func (f *Filters) validate() error {
	if f == nil {
		return nil
	}
	if err := ValidateText("filters.path_prefix", f.PathPrefix); err != nil {
		return err
	}
	const field = "filters.metadata"
	if len(f.Metadata) > MaxFilterKeys {
		return invalid(field, fmt.Sprintf("%d keys, at most %d are allowed", len(f.Metadata), MaxFilterKeys))
	}
	for _, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		values := f.Metadata[key]
		if key == "" || len(values) == 0 || len(values) > MaxFilterValues {
			return invalid(field, fmt.Sprintf("key %q has %d values, 1 to %d are allowed", key, len(values), MaxFilterValues))
		}
		if err := ValidateText(field, key+strings.Join(values, "")); err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) budget() Budget {
	return orNone(r.Budget)
}

func (r *Request) sampling() Sampling {
	return orNone(r.Sampling)
}

// orNone is what p points to, the zero value when there is none.
func orNone[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// ValidateCollection checks a collection's name; the error is an *Error.
func ValidateCollection(name string) error { return validateName("collection", name) }

func validateName(field, name string) error {
	if len(name) > MaxNameBytes {
		return invalid(field, fmt.Sprintf("%d bytes, at most %d are allowed", len(name), MaxNameBytes))
	}
	return ValidateText(field, name)
}

// ValidateText refuses what PostgreSQL and JSON cannot carry, with an *Error that
// names the field.
func ValidateText(field, text string) error {
	if !utf8.ValidString(text) {
		return invalid(field, "is not valid UTF-8")
	}
	if strings.ContainsRune(text, 0) {
		return invalid(field, "holds a NUL character (U+0000)")
	}
	return nil
}

// blank reports whether nothing in the text can be seen.
func blank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
	}) < 0
}
