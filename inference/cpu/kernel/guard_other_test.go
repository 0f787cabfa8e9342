//go:build !linux

package kernel

import (
	"slices"
	"testing"
)

// Guard pages are set up on Linux only; elsewhere the copies are plain.

func guarded[T any](_ testing.TB, src []T) []T       { return slices.Clone(src) }
func guardedBefore[T any](_ testing.TB, src []T) []T { return slices.Clone(src) }
