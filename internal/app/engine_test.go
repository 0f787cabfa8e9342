package app

import (
	"strings"
	"testing"

	"ragd/inference/engine"
	"ragd/internal/answer"
)

// Of a panic in a step the log tells where it was, and the caller nothing.
func TestAPanicIsLoggedWithItsStack(t *testing.T) {
	err := failure(&engine.PanicError{Value: "index out of range", Stack: []byte("goroutine 7 [running]")})
	if !strings.Contains(err.Error(), "index out of range") || !strings.Contains(err.Error(), "goroutine 7") {
		t.Errorf("%v", err)
	}
	if told := answer.AsError(err); told.Code != answer.Internal || strings.Contains(told.Message, "index") {
		t.Errorf("%+v", told)
	}
}
