package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"ragd/inference/engine"
)

func TestFeedLetsGoOfItsContext(t *testing.T) {
	for _, finished := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			closed := 0
			feed := engine.NewFeed(func() { closed++ })
			ctx, cancel := context.WithCancel(t.Context())
			feed.Watch(ctx)
			if finished {
				feed.Finish("", engine.Done{})
			}
			cancel()
			synctest.Wait()
			if want := !finished; feed.Cancelled() != want || (closed == 1) != want {
				t.Errorf("finished %v: cancelled %v, closed %d times", finished, feed.Cancelled(), closed)
			}
		})
	}
}

// Events that were not read in time are joined, and none is lost.
func ExampleFeed() {
	feed := engine.NewFeed(nil)
	feed.Queued(2)
	feed.Queued(1)
	feed.Push("Hel", 1, 2)
	feed.Push("lo", 3)
	feed.Finish("!", engine.Done{Reason: engine.ReasonStop})

	stream := feed.Stream()
	for {
		event, err := stream.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return
		}
		switch e := event.(type) {
		case engine.Queued:
			fmt.Println("position", e.Position)
		case engine.Delta:
			fmt.Printf("%q %v\n", e.Text, e.Tokens)
		case engine.Done:
			fmt.Println(e.Reason)
		}
	}
	// Output:
	// position 1
	// "Hello!" [1 2 3]
	// stop
}
