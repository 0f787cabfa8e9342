package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
)

// TestTimeIsShared: what the requests are charged is the time that the decoder
// worked, whoever ran beside whom, and apart for prompt and answer.
func TestTimeIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		worked := time.Duration(0)
		dec := enginetest.NewDecoder(256, 4096)
		dec.Next = func(tokens []int32) int32 { return 'a' + int32(len(tokens)%20) }
		dec.Before = func(b model.Batch) error {
			took := 3 * time.Millisecond
			for _, piece := range b {
				took += time.Duration(len(piece.Tokens)) * time.Millisecond
			}
			time.Sleep(took)
			worked += took
			return nil
		}
		e, err := New(dec, enginetest.Tokenizer{}, Config{NoLookup: true, NoPrefixCache: true})
		if err != nil {
			t.Fatal(err)
		}
		var streams []*Stream
		for i, tokens := range []int{40, 7, 300, 1} {
			s, err := e.Submit(t.Context(), Request{Tokens: make([]int32, tokens), MaxTokens: 5 + 9*i})
			if err != nil {
				t.Fatal(err)
			}
			streams = append(streams, s)
			time.Sleep(11 * time.Millisecond)
		}
		charged := time.Duration(0)
		for i, s := range streams {
			for {
				event, err := s.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if d, ok := event.(Done); ok {
					u := d.Usage
					if u.PrefillTime <= 0 || u.DecodeTime <= 0 || u.PrefillTime > d.Times.Prefill() || u.DecodeTime > d.Times.Decode() {
						t.Errorf("request %d is charged %v and %v of %v and %v", i, u.PrefillTime, u.DecodeTime, d.Times.Prefill(), d.Times.Decode())
					}
					charged += u.PrefillTime + u.DecodeTime
					break
				}
			}
		}
		if d := worked - charged; d < 0 || d > time.Microsecond { // what does not divide is lost
			t.Errorf("the decoder worked %v, %v are charged", worked, charged)
		}
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}
