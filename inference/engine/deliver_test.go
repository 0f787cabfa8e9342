package engine_test

import (
	"runtime"
	"testing"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
)

// A reader has a token as soon as it was drawn, also where the engine keeps all
// processors busy: not several at once, when one is taken from it after 10 ms.
func TestTokensComeOneByOne(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	dec := enginetest.NewDecoder(64, 512)
	dec.Before = func(model.Batch) error {
		for end := time.Now().Add(time.Millisecond); time.Now().Before(end); {
			continue // computing
		}
		return nil
	}
	e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	a := run(t, e, request("a running answer", 200))
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	// Once in a while the scheduler looks at the engine first.
	if a.deltas < len(a.tokens)*9/10 {
		t.Errorf("%d tokens came in %d pieces", len(a.tokens), a.deltas)
	}
}
