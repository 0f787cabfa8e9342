package tenant

import (
	"context"
	"testing"
)

func TestOf(t *testing.T) {
	ctx := context.Background()
	if got := Of(ctx); got != Default {
		t.Errorf("no tenant: %q", got)
	}
	if got := Of(With(ctx, "")); got != Default {
		t.Errorf("empty tenant: %q", got)
	}
	a := With(ctx, "a")
	if got := Of(With(a, "b")); got != "b" {
		t.Errorf("inner tenant: %q", got)
	}
	if got := Of(a); got != "a" {
		t.Errorf("outer tenant: %q", got)
	}
}
