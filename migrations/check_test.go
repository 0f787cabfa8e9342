package migrations

import (
	"strings"
	"testing"
)

func TestAtLeast(t *testing.T) {
	for _, tt := range []struct {
		have, want string
		ok         bool
	}{
		{"0.8.4", "0.8.4", true},
		{"0.8.3", "0.8.4", false},
		{"0.8.10", "0.8.4", true},
		{"0.9", "0.8.4", true},
		{"0.8", "0.8.4", false},
		{"1.0.0", "0.8.4", true},
		{"0.8.5-beta", "0.8.4", false}, // unreadable counts as 0
		{"", "0.8.4", false},
	} {
		if got := atLeast(tt.have, tt.want); got != tt.ok {
			t.Errorf("%q at least %q: %v", tt.have, tt.want, got)
		}
	}
}

// TestVectorFault goes through the states of pgvector on a server that the tests
// cannot have at hand.
func TestVectorFault(t *testing.T) {
	v := func(s string) *string { return &s }
	for _, tt := range []struct {
		name                 string
		available, installed *string
		says                 []string // none: no fault
	}{
		{"installed", v("0.8.5"), v("0.8.4"), nil},
		{"installable", v("0.8.5"), nil, nil},
		{"package newer than extension", v("0.8.5"), v("0.7.0"), []string{"0.7.0 is installed", "ALTER EXTENSION vector UPDATE;"}},
		{"old package, installed", v("0.8.1"), v("0.8.1"), []string{"0.8.1 is too old", "postgresql-16-pgvector", "ALTER EXTENSION vector UPDATE;"}},
		{"old package", v("0.5.1"), nil, []string{"offers pgvector 0.5.1 only", "postgresql-16-pgvector", "CREATE EXTENSION vector;"}},
		{"no package", nil, nil, []string{"pgvector is missing", "postgresql-16-pgvector", "CREATE EXTENSION vector;"}},
	} {
		got := facts{server: 160004, available: tt.available, installed: tt.installed}.vectorFault()
		if (got == "") != (tt.says == nil) {
			t.Errorf("%s: %q", tt.name, got)
		}
		for _, s := range tt.says {
			if !strings.Contains(got, s) {
				t.Errorf("%s: %q does not say %q", tt.name, got, s)
			}
		}
	}
}

func TestServerFault(t *testing.T) {
	for want, f := range map[string]facts{
		"":          {server: 150000, encoding: "UTF8"},
		"14.9":      {server: 140009, version: "14.9", encoding: "UTF8"},
		"SQL_ASCII": {server: 180004, encoding: "SQL_ASCII"},
		"standby":   {server: 180004, encoding: "UTF8", standby: true},
	} {
		if got := f.serverFault(); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%q, want a message with %q", got, want)
		}
	}
}
