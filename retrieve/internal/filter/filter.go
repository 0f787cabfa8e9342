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
	"golang.org/x/text/unicode/norm"

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
		conds = append(conds, w.prefix(f.PathPrefix))
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

// prefix is the condition that a path begins with p, whichever of Unicode's canonical
// forms each part of either is in: names from macOS are in another one than what people
// type, and a folder of one form may hold files of the other. What of p is ASCII up to
// the first other character can be looked up in the index.
func (w *Filter) prefix(p string) string {
	if norm.NFC.String(p) == norm.NFD.String(p) { // and so p
		w.Args["prefix"] = p
		return "starts_with(d.path, @prefix)"
	}
	lead := p
	if i := strings.IndexFunc(p, func(r rune) bool { return r >= utf8.RuneSelf }); i >= 0 {
		lead = p[:max(i-1, 0)] // an accent may belong to the letter before it
	}
	w.Args["lead"], w.Args["prefix"] = lead, norm.NFC.String(p)
	return "starts_with(d.path, @lead) AND starts_with(normalize(d.path, NFC), @prefix)"
}

// containment lists the jsonb patterns of which a document must contain one: the
// value alone or as an element of a list, as it is spelt or composed.
func containment(key string, values []string) []string {
	var out []string
	for _, v := range values {
		if !Storable(key) || !Storable(v) {
			continue
		}
		out = append(out, patterns(key, v)...)
		if k, c := norm.NFC.String(key), norm.NFC.String(v); k != key || c != v {
			out = append(out, patterns(k, c)...)
		}
	}
	return out
}

func patterns(key, value string) []string {
	var out []string
	for _, form := range []any{value, []string{value}} {
		b, err := json.Marshal(map[string]any{key: form})
		if err == nil { // strings always encode
			out = append(out, string(b))
		}
	}
	return out
}

// Storable says whether PostgreSQL can hold a text; what it cannot is nowhere
// in the database.
func Storable(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}
