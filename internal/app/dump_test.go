package app

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"ragd/internal/config"
	"ragd/internal/testenv"
)

// A dump restored into another database answers searches there as it did here.
func TestDumpRestore(t *testing.T) {
	cfg := settings(t)
	from := start(t, cfg)
	from.ingest(t, "default", false, write(t, map[string]string{
		"crane.md": "# Cranes\n\nThe crane at dock four lifts fourteen tonnes.\n", "ko.md": "# 항구\n\n4번 부두의 기중기는 14톤을 든다.\n",
	}))
	opts := Options{Version: "test", Log: slog.New(slog.DiscardHandler)}
	var dump bytes.Buffer
	if err := Dump(t.Context(), tools(t, cfg), opts, &dump); err != nil {
		t.Fatal(err)
	}
	into := cfg
	into.Database.URL = testenv.Database(t).Config().ConnString()
	restore := func(dump []byte, replace bool) error {
		return Restore(t.Context(), tools(t, into), opts, bytes.NewReader(dump), replace)
	}
	if err := restore(dump.Bytes(), false); err != nil {
		t.Fatal(err)
	}
	if err := restore(dump.Bytes(), false); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("over documents: %v, want ErrNotEmpty", err)
	}
	if err := restore(dump.Bytes(), true); err != nil {
		t.Errorf("over documents, as asked: %v", err)
	}
	if err := restore(dump.Bytes()[:dump.Len()/2], true); err == nil {
		t.Error("half a dump was taken")
	}
	to := start(t, into)
	for query, want := range map[string]string{"How much does the crane lift?": "crane.md", "기중기는 몇 톤을 드나요?": "ko.md"} {
		for name, l := range map[string]*live{"before": from, "after": to} {
			status, answer := l.call(t, "/v1/search", body{"query": query})
			if at := strings.Index(answer, ".md"); status != 200 || at < 0 || !strings.Contains(answer[:at+3], want) {
				t.Errorf("%s, %s: %d %.300s", name, query, status, answer)
			}
		}
	}
}

// tools are the settings with the home whose PostgreSQL the tests run on.
func tools(t *testing.T, cfg config.Config) config.Config {
	t.Helper()
	var err error
	cfg.Home = ""
	if cfg.Home, err = home(cfg); err != nil {
		t.Fatal(err)
	}
	return cfg
}
