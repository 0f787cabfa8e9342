package vector

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

// filter is a condition over ragd.documents d and its named arguments.
type filter struct {
	sql  string // "" for none
	args pgx.NamedArgs
}

// newFilter builds the condition. ok is false when nothing can match: a key
// without values, or text that the database cannot hold.
func newFilter(f retrieve.Filters) (w filter, ok bool) {
	var conds []string
	w.args = pgx.NamedArgs{}
	if f.PathPrefix != "" {
		if !storable(f.PathPrefix) {
			return filter{}, false
		}
		w.args["prefix"] = f.PathPrefix
		conds = append(conds, "starts_with(d.path, @prefix)")
	}
	for i, key := range slices.Sorted(maps.Keys(f.Metadata)) {
		patterns := containment(key, f.Metadata[key])
		if len(patterns) == 0 {
			return filter{}, false
		}
		name := fmt.Sprintf("metadata%d", i)
		w.args[name] = patterns
		conds = append(conds, "d.metadata @> ANY (@"+name+"::text[]::jsonb[])")
	}
	w.sql = strings.Join(conds, " AND ")
	return w, true
}

// containment lists the jsonb patterns of which a document must contain one: the
// value alone or as an element of a list.
func containment(key string, values []string) []string {
	var out []string
	for _, v := range values {
		if !storable(key) || !storable(v) {
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

// storable says whether PostgreSQL can hold a text; what it cannot is nowhere
// in the database.
func storable(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}
