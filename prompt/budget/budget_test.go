package budget

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ragd/prompt"
)

func chunk(id int64, tokens int) Candidate { return Candidate{ChunkID: id, Tokens: tokens} }

func keptIDs(p *Plan) []int64 {
	ids := []int64{}
	for _, k := range p.Kept {
		ids = append(ids, k.ChunkID)
	}
	return ids
}

func TestPackEvidence(t *testing.T) {
	fixed := Fixed{Template: 10, System: 5, Question: 5}
	tests := []struct {
		name    string
		in      Input
		kept    []int64
		dropped []Dropped
	}{
		{
			name: "best last by default",
			in:   Input{Limits: Limits{Window: 100}, Candidates: []Candidate{chunk(1, 10), chunk(2, 10)}},
			kept: []int64{2, 1}, dropped: []Dropped{},
		},
		{
			name: "a long chunk does not stop a shorter one behind it",
			in: Input{
				Limits: Limits{Window: 100, AnswerTokens: 20}, Order: BestFirst,
				Candidates: []Candidate{chunk(1, 30), chunk(2, 50), chunk(3, 30)},
			},
			kept: []int64{1, 3}, dropped: []Dropped{{2, 50, OverBudget}},
		},
		{
			name: "context tokens bound the evidence alone",
			in: Input{
				Limits: Limits{Window: 1000, ContextTokens: 40}, Order: BestFirst,
				Candidates: []Candidate{chunk(1, 30), chunk(2, 11), chunk(3, 10)},
			},
			kept: []int64{1, 3}, dropped: []Dropped{{2, 11, OverBudget}},
		},
		{
			name: "a reason of an earlier stage passes through and uses no place",
			in: Input{Limits: Limits{Window: 1000, MaxChunks: 1}, Candidates: []Candidate{
				{ChunkID: 1, Tokens: 5, Drop: Duplicate},
				{ChunkID: 2, Tokens: 5, Drop: BelowThreshold},
				{ChunkID: 3, Tokens: 5, Drop: Filtered},
				chunk(4, 5), chunk(5, 5),
			}},
			kept:    []int64{4},
			dropped: []Dropped{{1, 5, Duplicate}, {2, 5, BelowThreshold}, {3, 5, Filtered}, {5, 5, MaxChunks}},
		},
		{
			name: "what the window holds but the time does not",
			in: Input{
				Limits: Limits{Window: 100, TTFTTokens: 50}, Order: BestFirst,
				Candidates: []Candidate{chunk(1, 30), chunk(2, 30), chunk(3, 60)},
			},
			kept: []int64{1}, dropped: []Dropped{{2, 30, OverTTFT}, {3, 60, OverBudget}},
		},
		{
			name: "a time that the question alone exceeds leaves no evidence",
			in:   Input{Limits: Limits{Window: 100, TTFTTokens: 1}, Candidates: []Candidate{chunk(1, 1)}},
			kept: []int64{}, dropped: []Dropped{{1, 1, OverTTFT}},
		},
		{
			name: "the last token of the room is used",
			in: Input{
				Limits: Limits{Window: 61}, Order: BestFirst, Candidates: []Candidate{chunk(1, 19), chunk(2, 19)},
				ItemTemplate: func(n int) int { return n },
			},
			kept: []int64{1, 2}, dropped: []Dropped{},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tc.in.Fixed = fixed
			p, err := Pack(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.kept, keptIDs(p)); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.dropped, p.Dropped); diff != "" {
				t.Errorf("dropped (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPackDetail(t *testing.T) {
	candidates := []Candidate{{ChunkID: 1, Tokens: 60, Sentences: 20}, {ChunkID: 2, Tokens: 60, Sentences: 25}, chunk(3, 30)}
	tests := []struct {
		name   string
		detail Detail
		window int
		want   []Kept
	}{
		{
			"auto with room presents whole chunks", Auto, 150,
			[]Kept{{0, 1, 60, false}, {1, 2, 60, false}, {2, 3, 30, false}},
		},
		{
			"auto in a tight window presents sentences", Auto, 149,
			[]Kept{{0, 1, 20, true}, {1, 2, 25, true}, {2, 3, 30, false}},
		},
		{"chunks stay whole", Chunks, 100, []Kept{{0, 1, 60, false}, {2, 3, 30, false}}},
		{
			"sentences though there is room", Sentences, 1000,
			[]Kept{{0, 1, 20, true}, {1, 2, 25, true}, {2, 3, 30, false}},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p, err := Pack(Input{Candidates: candidates, Detail: tc.detail, Order: BestFirst, Limits: Limits{Window: tc.window}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, p.Kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPackHistory(t *testing.T) {
	turn := Turn{Tokens: 8, Template: 2}
	tests := []struct {
		name       string
		turns      int
		candidates []Candidate
		window     int
		dropped    int
	}{
		{"all fit", 3, []Candidate{chunk(1, 20)}, 80, 0},
		{"the oldest goes first, evidence keeps its half", 9, []Candidate{chunk(1, 40)}, 80, 5},
		{"without evidence the room is the history's", 9, nil, 80, 1},
		{"room that evidence leaves is used", 9, []Candidate{chunk(1, 15)}, 80, 3},
		{"no room", 2, nil, 9, 2},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			in := Input{Candidates: tc.candidates, Limits: Limits{Window: tc.window}}
			for range tc.turns {
				in.History = append(in.History, turn)
			}
			p, err := Pack(in)
			if err != nil {
				t.Fatal(err)
			}
			if p.TurnsDropped != tc.dropped || len(p.Kept) != len(tc.candidates) {
				t.Errorf("dropped %d turns, kept %v; want %d turns dropped, all evidence kept", p.TurnsDropped, keptIDs(p), tc.dropped)
			}
		})
	}
}

func TestPackTruncate(t *testing.T) {
	in := Input{
		Limits:       Limits{Window: 60},
		History:      []Turn{{Tokens: 40}},
		Candidates:   []Candidate{{ChunkID: 9, Tokens: 5, Drop: Duplicate}, chunk(1, 500), chunk(2, 400)},
		ItemTemplate: func(int) int { return 4 },
	}
	p, err := Pack(in)
	if err != nil {
		t.Fatal(err)
	}
	want := &Cut{Index: 1, ChunkID: 1, Room: 56}
	if diff := cmp.Diff(want, p.Truncate); diff != "" {
		t.Fatalf("truncate (-want +got):\n%s", diff)
	}
	in.Candidates[1].Tokens = 56 // the caller cut it
	if p, err = Pack(in); err != nil {
		t.Fatal(err)
	}
	if p.Truncate != nil || p.Ledger.Input() != 60 || p.TurnsDropped != 1 {
		t.Errorf("after the cut: truncate %v, input %d, %d turns dropped", p.Truncate, p.Ledger.Input(), p.TurnsDropped)
	}
}

func TestPackOverBudget(t *testing.T) {
	in := Input{Fixed: Fixed{Template: 10, System: 20, Question: 30}, Limits: Limits{Window: 100, AnswerTokens: 40}}
	if _, err := Pack(in); err != nil {
		t.Fatalf("at the limit exactly: %v", err)
	}
	in.Fixed.Question++
	_, err := Pack(in)
	var over *OverBudgetError
	if !errors.As(err, &over) || over.Need != 101 || over.Have != 100 || !strings.Contains(err.Error(), "1 too many") {
		t.Errorf("one above the limit: %v", err)
	}
}

func TestPackRefusesBadCounts(t *testing.T) {
	inputs := map[string]Input{
		"window":                   {Limits: Limits{Window: -1}},
		"candidate 0 tokens":       {Limits: Limits{Window: 10}, Candidates: []Candidate{{Tokens: -1}}},
		"history turn 0 tokens":    {Limits: Limits{Window: 10}, History: []Turn{{Tokens: maxTokens + 1}}},
		"candidate 0 drop reason ": {Limits: Limits{Window: 10}, Candidates: []Candidate{{Drop: "boredom"}}},
	}
	for name, in := range inputs {
		var bad *InputError
		if _, err := Pack(in); !errors.As(err, &bad) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLedgerJSON(t *testing.T) {
	p, err := Pack(Input{
		Fixed: Fixed{1, 2, 3, 4}, Limits: Limits{Window: 50, AnswerTokens: 5, MaxChunks: 1},
		History: []Turn{{Tokens: 90}}, Candidates: []Candidate{chunk(7, 6), chunk(8, 9)},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(p.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"template":1,"system":2,"history":0,"tools":3,"question":4,"evidence":[{"chunk_id":7,"tokens":6}],` +
		`"dropped":[{"chunk_id":8,"tokens":9,"reason":"max_chunks"}],"history_turns_dropped":1,"answer_reserved":5,"window":50}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMeasured(t *testing.T) {
	p, err := Pack(Input{Limits: Limits{Window: 100}, Candidates: []Candidate{chunk(1, 10), chunk(2, 20)}})
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[prompt.Part]int{
		{Kind: prompt.Template}: 3, {Kind: prompt.System}: 4, {Kind: prompt.Question}: 5, {Kind: prompt.Tools}: 6,
		{Kind: prompt.History}: 7, {Kind: prompt.History, Index: 1}: 8,
		{Kind: prompt.Evidence}: 21, {Kind: prompt.Evidence, Index: 1}: 11,
	}
	l := p.Measured(tokens)
	if err := l.Check(65); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]Item{{ChunkID: 2, Tokens: 21}, {ChunkID: 1, Tokens: 11}}, l.Evidence); diff != "" || l.History != 15 {
		t.Errorf("history %d, evidence (-want +got):\n%s", l.History, diff)
	}
	if err := l.Check(64); err == nil {
		t.Error("a wrong total passed")
	}
	l.AnswerReserved = 36
	var over *OverBudgetError
	if err := l.Check(65); !errors.As(err, &over) {
		t.Errorf("beyond the window: %v", err)
	}
}
