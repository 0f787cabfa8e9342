package schedule

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAdmit(t *testing.T) {
	for _, c := range []struct {
		name                string
		needs               []int
		grow                bool // whether those that wait may need more
		running, free, keep int
		want                int
	}{
		{"all fit", []int{2, 2}, false, 0, 4, 0, 2},
		{"no block too many", []int{2, 3}, false, 0, 4, 0, 1},
		{"the first does not fit, the second waits behind it", []int{9, 1}, false, 0, 4, 0, 0},
		{"as many as may run", []int{1, 1, 1}, false, 2, 100, 0, 2},
		{"all places taken", []int{1}, false, 4, 100, 0, 0},
		{"everything shared needs nothing", []int{0}, false, 0, 0, 0, 1},
		{"those that run have a block each to grow", []int{2}, false, 2, 3, 2, 0},
		{"just so", []int{2}, false, 2, 4, 2, 1},
		{"and so have those that were just admitted", []int{2, 2}, true, 0, 4, 0, 1},
		{"with a block for the first", []int{2, 2}, true, 0, 5, 0, 2},
		{"alone all of it may be taken", []int{4}, true, 0, 4, 0, 1},
	} {
		order := make([]int, len(c.needs))
		for i := range order {
			order[i] = i
		}
		got := Admit(order, c.running, c.free, c.keep, Limits{Running: 4}, func(i int) Need { return Need{c.needs[i], c.grow} })
		if got != c.want {
			t.Errorf("%s: admitted %d, want %d", c.name, got, c.want)
		}
	}
}

func TestVictim(t *testing.T) {
	served := func(tokens ...float64) (out []Holder) {
		for _, n := range tokens {
			out = append(out, Holder{Served: n})
		}
		return out
	}
	for _, c := range []struct {
		name    string
		running []Holder
		want    int
	}{
		{"nobody runs", nil, -1},
		{"whoever runs alone goes on", served(7), -1},
		{"the last to start of one tenant", served(5, 5, 5), 2},
		{"of the tenant that was served most", served(1, 9, 1), 1},
		{"the last of these", served(1, 9, 9, 1), 2},
		{"the first to start never", served(9, 1, 2, 1), 2},
		{"a promise is kept", []Holder{{}, {Served: 1}, {Promised: true, Served: 9}, {}}, 1},
		{"as long as there is another", []Holder{{}, {Promised: true}, {Promised: true}}, 2},
	} {
		if got := Victim(c.running); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestPlan(t *testing.T) {
	l := Limits{Running: 4, StepTokens: 32, PieceTokens: 20}
	for _, c := range []struct {
		name          string
		pending, want []int
	}{
		{"nothing runs", nil, nil},
		{"only decode", []int{1, 1, 1}, []int{1, 1, 1}},
		{"a long prompt goes in pieces", []int{100}, []int{20}},
		{"decode before a prompt that came earlier", []int{100, 1}, []int{20, 1}},
		{"the next prompt gets what is left", []int{100, 100, 1}, []int{20, 11, 1}},
		{"and the one after that nothing", []int{100, 100, 100, 1}, []int{20, 11, 0, 1}},
		{"a short rest leaves room", []int{5, 100}, []int{5, 20}},
	} {
		if got := Plan(nil, c.pending, l); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestPlanAppends(t *testing.T) {
	got := Plan([]int{7}, []int{50, 1}, Limits{StepTokens: 32, PieceTokens: 32})
	if want := []int{7, 31, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Every plan keeps to the limits, serves every decoding sequence and gets on.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{Running: rapid.IntRange(1, 8).Draw(t, "running")}
		l.StepTokens = rapid.IntRange(l.Running, 64).Draw(t, "step")
		l.PieceTokens = rapid.IntRange(1, 64).Draw(t, "piece")
		pending := rapid.SliceOfN(rapid.IntRange(1, 100), 1, l.Running).Draw(t, "pending")
		sum := 0
		for i, n := range Plan(nil, pending, l) {
			sum += n
			if n < 0 || n > pending[i] || n > l.PieceTokens {
				t.Fatalf("%d rows for %d pending, piece %d", n, pending[i], l.PieceTokens)
			}
			if pending[i] == 1 && n != 1 {
				t.Fatalf("a decoding sequence got %d rows", n)
			}
		}
		if sum == 0 || sum > l.StepTokens {
			t.Fatalf("%d rows in a step of %d", sum, l.StepTokens)
		}
	})
}

func TestPlanBoundsPromptsBesideDecoding(t *testing.T) {
	l := Limits{Running: 4, StepTokens: 32, PieceTokens: 20, PromptTokens: 6}
	for _, c := range []struct {
		name          string
		pending, want []int
	}{
		{"a prompt alone is not held up", []int{100, 100}, []int{20, 12}},
		{"beside an answer it is", []int{100, 1}, []int{6, 1}},
		{"two share what there is", []int{4, 1, 100}, []int{4, 1, 2}},
	} {
		if got := Plan(nil, c.pending, l); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
