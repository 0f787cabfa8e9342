package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/model"
	"ragd/internal/testenv"
)

// script is a program that prints text, in place of a peer.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "peer")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEngineInTurnWithAPeer(t *testing.T) {
	log := filepath.Join(t.TempDir(), "calls")
	peer := script(t, `echo "$@" >> `+log+`; echo '[{"avg_ts": 2.0}]'`)
	said := 0
	r, err := RunEngine(t.Context(), EngineConfig{
		Model: testenv.Model(t, "smollm2-135m-instruct"), Tests: []string{"pp32", "tg4@d32", "pp9000", "streams2", "lookup"}, Pairs: 2,
		Peer:     &LlamaBench{Path: peer, Model: "file.gguf", Threads: 2, Flags: []string{"-rtr", "1"}},
		Progress: func(string) { said++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(r.Tests))
	for i, test := range r.Tests {
		names[i] = test.Name
		if test.Ragd.Min <= 0 || test.Ragd.Max < test.Ragd.Median {
			t.Errorf("%s: %+v", test.Name, test.Ragd)
		}
	}
	if got := strings.Join(names, " "); got != "pp32 tg4@d32 streams2 lookup" { // pp9000 is longer than the context
		t.Fatalf("tests %s", got)
	}
	for _, test := range r.Tests[:2] {
		if test.Peer.Median != 2 || test.Ratio.Min != test.Ragd.Min/2 || test.OfPeak == nil || *test.OfPeak <= 0 {
			t.Errorf("%+v, peer %+v, ratio %+v", test, test.Peer, test.Ratio)
		}
	}
	if ratio := r.Tests[3].Ratio; ratio == nil || ratio.Median < 1 {
		t.Errorf("lookup over decoding without: %+v, want more than 1", ratio)
	}
	// The answers are quotes, so all but their beginnings can be drafted.
	var accepted, drafted int
	var perStep float64
	if _, err := fmt.Sscanf(r.Tests[3].Detail, "%d of %d drafted tokens accepted, %g tokens a step", &accepted, &drafted, &perStep); err != nil || accepted < drafted*3/4 || perStep < 4 {
		t.Errorf("%q, %v; want three quarters accepted and 4 tokens a step", r.Tests[3].Detail, err)
	}
	if r.Machine.GBs <= 0 || r.Machine.GOPs <= 0 || said == 0 {
		t.Errorf("%+v, %d lines of progress", r.Machine, said)
	}
	calls, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	want := "-m file.gguf -t 2 -p 32 -n 0 -r 1 -o json -rtr 1\n"
	if got := string(calls); strings.Count(got, want) != 2 || !strings.Contains(got, "-p 0 -n 4 -r 1 -o json -rtr 1 -d 32\n") {
		t.Errorf("the peer was called with\n%s", got)
	}
}

// device is the CPU in the place of a device with peaks of its own.
type device struct {
	model.Ops
	err error
}

func (d device) Peaks() (memory, int8, float16 float64, err error) { return 1e6, 2e6, 4e6, d.err }

func TestEngineOnADevice(t *testing.T) {
	cfg := EngineConfig{
		Model: testenv.Model(t, "smollm2-135m-instruct"), Tests: []string{"pp32", "tg4"}, Pairs: 1, Progress: func(string) {},
		Backend: func() (model.Ops, error) {
			ops, err := cpu.New(cpu.Config{})
			return device{Ops: ops}, err
		},
	}
	r, err := RunEngine(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if p := r.Machine.Peak; p == nil || *p != (Peak{1e6, 2e6, 4e6}) || !strings.HasPrefix(r.Machine.Device, "cpu/") {
		t.Errorf("%+v, peak %+v", r.Machine, p)
	}
	// SmolLM2's layers are 106,168,320 weights, 90 MB and more with the output matrix.
	for i, least := range []float64{2 * 106_168_320 / 2e15, 90e6 / 1e15} {
		test := &r.Tests[i]
		if share := test.OfPeak; share == nil || *share < least*test.Ragd.Median || *share > 1.2*least*test.Ragd.Median {
			t.Errorf("%s: %+v, share %v", test.Name, test.Ragd, share)
		}
	}
	failed := errors.New("the driver does not tell")
	cfg.Backend = func() (model.Ops, error) {
		ops, err := cpu.New(cpu.Config{})
		return device{ops, failed}, err
	}
	if _, err := RunEngine(t.Context(), cfg); !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
}

// closing is a backend that remembers that it was closed.
type closing struct {
	*cpu.Backend
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return c.Backend.Close()
}

// An engine that does not get warm is not left running.
func TestAnInterruptedEngineIsClosed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ops *closing
	_, err := RunEngine(ctx, EngineConfig{
		Model: testenv.Model(t, "smollm2-135m-instruct"), Tests: []string{"pp32"}, Pairs: 1,
		Backend: func() (model.Ops, error) {
			b, err := cpu.New(cpu.Config{})
			ops = &closing{Backend: b}
			return ops, err
		},
		Progress: func(what string) {
			if what == "warming up" {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || ops == nil || !ops.closed {
		t.Errorf("%v, closed: %v", err, ops != nil && ops.closed)
	}
}

func TestABrokenPeerIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"echo lost the model >&2; exit 3": "lost the model",
		"echo hello":                      "invalid character",
		"echo '[]'":                       "got 0",
	} {
		p := &LlamaBench{Path: script(t, text), Model: "m", Threads: 1}
		if _, err := p.measure(t.Context(), shape{prompt: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}

func TestEmbedInTurnWithAPeer(t *testing.T) {
	texts := []string{"A first passage.", "둘째 문단이다.", "A \"third\" one."}
	log := filepath.Join(t.TempDir(), "input")
	r, err := RunEmbed(t.Context(), EmbedConfig{
		Model: testenv.Model(t, "multilingual-e5-small"), Texts: texts, Pairs: 2,
		Peer:     []string{script(t, `cat >> `+log+`; echo '{"texts_per_s": 4}'`)},
		Progress: func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tests) != 3 || r.Tests[0].Peer.Median != 4 || r.Tests[1].Peer != nil || r.Tests[2].Peer.Median != 250 {
		t.Errorf("%+v", r.Tests)
	}
	for _, test := range r.Tests {
		if test.Ragd.Min <= 0 {
			t.Errorf("%s: %+v", test.Name, test.Ragd)
		}
	}
	input, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(input); strings.Count(got, "\"둘째 문단이다.\"\n") != 2 || strings.Count(got, "\n") != 2*(len(texts)+len(queries)) {
		t.Errorf("the peer read %q", got)
	}
}
