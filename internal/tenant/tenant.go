// Package tenant carries, with a request's context, whose request it is. Every
// store, search and cache below looks there, so that no handler can forget it.
package tenant

import "context"

// Default is the tenant of callers without one: the operator's own commands, and
// keys that name none.
const Default = "default"

type contextKey struct{}

// With returns a context of the named tenant's.
func With(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, contextKey{}, name)
}

// Of is the tenant whose request ctx belongs to, Default where none was said.
func Of(ctx context.Context) string {
	if name, _ := ctx.Value(contextKey{}).(string); name != "" {
		return name
	}
	return Default
}
