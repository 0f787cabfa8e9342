package testenv

import (
	"context"
	"os"
	"sync"
	"testing"

	"ragd/internal/modelstore"
)

// found remembers the models of this process, so that each is looked for once.
var found sync.Map // name → func() (string, error)

// Model returns the path of a model of the catalogue ("smollm2-135m-instruct",
// "multilingual-e5-small", "all-minilm-l6-v2", "gemma-3-270m") in the data
// folder, fetching it when it is missing. It ends the test on failure.
func Model(tb testing.TB, name string) string {
	tb.Helper()
	once, _ := found.LoadOrStore(name, sync.OnceValues(func() (string, error) { return ensure(name) }))
	path, err := once.(func() (string, error))()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func ensure(name string) (string, error) {
	home, err := modelstore.Home()
	if err != nil {
		return "", err
	}
	stage := ""
	progress := func(_, _ int64, now string) {
		if now != stage {
			stage = now
			_, _ = os.Stderr.WriteString(name + ": " + stage + "\n")
		}
	}
	return modelstore.Open(home).Ensure(context.Background(), name, progress)
}
