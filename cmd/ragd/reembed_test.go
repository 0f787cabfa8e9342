package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"ragd/ingest"
	"ragd/internal/answer"
	"ragd/internal/testenv"
)

// TestReembed goes from one model to another on the command line: a question and a
// document of the wrong model are refused with both names and the command, an
// interrupted run goes on where it stopped.
func TestReembed(t *testing.T) {
	e := furnished(t)
	dir := corpus(t, 40)
	other := "RAGD_MODELS_EMBEDDING=" + testenv.Model(t, "all-minilm-l6-v2")
	mine := e.vars
	e.vars = append(mine[:len(mine):len(mine)], other)
	e.done(t, "ingest", dir, "-c", "rooms")
	e.done(t, "ingest", corpus(t, 2), "-c", "second")

	e.vars = mine
	for _, args := range [][]string{
		{"search", "Where does the key of room 2 hang?", "-c", "rooms"},
		{"ingest", dir, "-c", "rooms"},
	} {
		code, out, errs := e.ragd(t, args...)
		if code != exitFailed || out != "" || !strings.Contains(errs, "minilm") || !strings.Contains(errs, "e5") || !strings.Contains(errs, "ragd reembed --collection rooms") {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}

	code, out := e.interruptReembed(t)
	first := decode[[]ingest.RevisionReport](t, out)
	if code != exitInterrupted || len(first) != 1 || !first[0].Interrupted || first[0].Switched || first[0].Chunks == 0 {
		t.Fatalf("interrupted: exit %d, %s", code, out)
	}
	reports := decode[[]ingest.RevisionReport](t, e.done(t, "reembed", "-c", "rooms", "--json"))
	if r := reports[0]; !r.Switched || int64(r.Chunks+first[0].Chunks) != r.Total || r.Chunks == 0 || r.Tokens == 0 {
		t.Errorf("%+v after %+v", r, first[0])
	}
	found := decode[answer.SearchResult](t, e.done(t, "search", "Where does the key of room 2 hang?", "-c", "rooms", "--json"))
	if len(found.Results) == 0 || found.Results[0].Document != "corpus/room002.md" || found.Results[0].Collection != "rooms" {
		t.Errorf("%+v", found.Results)
	}
	if out := e.done(t, "reembed"); !strings.Contains(out, "rooms: is embedded by") || !strings.Contains(out, "second: ") || !strings.Contains(out, "answers now") {
		t.Errorf("all collections: %q", out)
	}
	both := decode[answer.SearchResult](t, e.done(t, "search", "the key of room 1", "-c", "rooms,second", "--json", "-k", "40"))
	from := map[string]bool{}
	for _, r := range both.Results {
		from[r.Collection] = true
	}
	if !from["rooms"] || !from["second"] {
		t.Errorf("a search of two collections finds %v", from)
	}
	if out := e.done(t, "search", "the key of room 1", "-c", "rooms", "-c", "second"); !strings.Contains(out, "second: corpus/room001.md") {
		t.Errorf("the table names no collections: %s", out)
	}
	code, _, errs := e.ragd(t, "search", "the key", "-c", "rooms,nowhere")
	if code != exitFailed || !strings.Contains(errs, `"nowhere"`) {
		t.Errorf("an unknown collection among two: exit %d, %q", code, errs)
	}
	code, _, errs = e.ragd(t, "reembed", "-c", "nowhere")
	if code != exitFailed || !strings.Contains(errs, `"nowhere"`) {
		t.Errorf("an unknown collection: exit %d, %q", code, errs)
	}
}

// interruptReembed sends Ctrl-C when some chunks have their new vectors.
func (e *env) interruptReembed(t *testing.T) (code int, stdout string) {
	t.Helper()
	cmd := e.command(t, "reembed", "-c", "rooms", "--json")
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var models int
		if err := e.pool.QueryRow(t.Context(), `
			SELECT count(DISTINCT v.model_id) FROM ragd.vectors v JOIN ragd.collections c ON c.id = v.collection_id WHERE c.name = 'rooms'`).Scan(&models); err != nil {
			t.Fatal(err)
		}
		if models == 2 || time.Now().After(deadline) {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code tells
	return cmd.ProcessState.ExitCode(), out.String()
}
