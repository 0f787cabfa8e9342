// Package filter turns the filters of a query into a condition in SQL, so that
// both sides of a search keep the same documents.
package filter

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"ragd/retrieve"
)

// Filter is a condition over ragd.documents d.
type Filter struct {
	// SQL is empty when every document passes.
	SQL string
	// Args are the named arguments of SQL.
	Args pgx.NamedArgs
}

// New builds the condition. ok is false when nothing can match: a key
// without values, or text that the database cannot hold.
func New(f retrieve.Filters) (w Filter, ok bool) {
	var conds []string
	w.Args = pgx.NamedArgs{}
	if f.PathPrefix != "" {
		if !Storable(f.PathPrefix) {
			return Filter{}, false
		}
		w.Args["prefix"] = f.PathPrefix
		conds = append(conds, "starts_with(d.path, @prefix)")
	}
	for i, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		patterns := containment(key, f.Metadata[key])
		if len(patterns) == 0 {
			return Filter{}, false
		}
		name := fmt.Sprintf("metadata%d", i)
		w.Args[name] = patterns
		conds = append(conds, "d.metadata @> ANY (@"+name+"::text[]::jsonb[])")
	}
	w.SQL = strings.Join(conds, " AND ")
	return w, true
}

// containment lists the jsonb patterns of which a document must contain one: the
// value alone or as an element of a list.
func containment(key string, values []string) []string {
	var out []string
	for _, v := range values {
		if !Storable(key) || !Storable(v) {
			continue
		}
		for _, form := range []any{v, []string{v}} {
			b, err := json.Marshal(map[string]any{key: form})
			if err == nil { // strings always encode
				out = append(out, string(b))
			}
		}
	}
	return out
}

// Storable says whether PostgreSQL can hold a text; what it cannot is nowhere
// in the database.
func Storable(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}
