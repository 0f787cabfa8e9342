package engine_test

import (
	"strings"
	"testing"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
)

// A prompt that was promised its first token has it in time beside running answers
// and with another prompt right behind it, unless a bound on gaps was set. One whose
// time was over long ago holds nobody up.
func TestPromisedFirstToken(t *testing.T) {
	const tokens = 600 // 0.6 s alone, and 3.3 s at the 4 to 11 rows of a step that gaps allow
	for name, c := range map[string]struct {
		gap    time.Duration
		by     time.Duration // 0: nothing promised
		inTime bool
	}{
		"promised":              {0, 900 * time.Millisecond, true},
		"not promised":          {0, 0, false},
		"gaps come first":       {20 * time.Millisecond, 900 * time.Millisecond, false},
		"over long ago already": {0, -10 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			dec := enginetest.NewDecoder(512, 4096)
			dec.Before = byRows
			inBubble(t, engine.Config{MaxGap: c.gap, NoLookup: true}, dec, func(t *testing.T, e *engine.Engine) {
				run(t, e, request(strings.Repeat("x", 300), 40))
				beside := submit(t, e, request("a running answer", 2000))
				defer beside.Close()
				time.Sleep(10 * stepTime)
				r := request(strings.Repeat("y", tokens), 1)
				began := time.Now()
				if c.by != 0 {
					r.FirstTokenBy = began.Add(c.by)
				}
				promised := submit(t, e, r)
				behind := submit(t, e, request(strings.Repeat("z", tokens), 1))
				took := readAll(t, promised).done.Times.FirstToken.Sub(began)
				if in := took <= 900*time.Millisecond; in != c.inTime {
					t.Errorf("the first token came after %v", took)
				}
				readAll(t, behind)
			})
		})
	}
}
