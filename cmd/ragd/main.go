// Command ragd ingests documents, answers questions over them, and says where
// every token and millisecond went.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"ragd/internal/answer"
	"ragd/internal/client"
)

// version is set by the Makefile.
var version = "unknown"

// Exit codes (DESIGN §9).
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartly      = 3
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes one command line and returns the exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	code := exitCode(ctx, err)
	switch {
	case code == exitInterrupted:
		fmt.Fprintln(os.Stderr, "ragd: interrupted"+unknownPart(err))
	case err != nil && !errors.Is(err, errPartly):
		fmt.Fprintln(os.Stderr, "ragd: "+shown(message(err)))
	}
	return code
}

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// errPartly ends a command that did only part of its work; what failed was
// already listed.
var errPartly = errors.New("some documents failed")

// errInterrupted ends a command that was told to stop and did.
var errInterrupted = errors.New("interrupted")

// unknownPart tells an interrupted person what could not be found out.
func unknownPart(err error) string {
	if errors.Is(err, client.ErrNoReport) {
		return ": " + err.Error()
	}
	return ""
}

func exitCode(ctx context.Context, err error) int {
	var usage *usageError
	var bad *answer.Error
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.As(err, &bad) && bad.Code == answer.Invalid:
		return exitUsage
	case ctx.Err() != nil, errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, errPartly):
		return exitPartly
	}
	return exitFailed
}

// message is what a person is told. An error of the question road shows what it
// wraps too: on the command line the operator is the reader.
func message(err error) string {
	var e *answer.Error
	if errors.As(err, &e) {
		return e.Error()
	}
	return err.Error()
}
