package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ragd/telemetry/cost"
)

func TestCost(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "ragd.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name string
		path string
		env  []string
		want cost.Prices
	}{
		{"none", "", nil, cost.Prices{Currency: "USD"}},
		{"numbers of a file", file("cost:\n  input_per_million: 0.15\n  output_per_million: 0.6\n"), nil, cost.Prices{Currency: "USD", Input: 150_000_000, CachedInput: 150_000_000, Output: 600_000_000}},
		{"small numbers", file("cost:\n  input_per_million: 0.000000001\n"), nil, cost.Prices{Currency: "USD", Input: 1, CachedInput: 1}},
		{"whole numbers", file("cost:\n  output_per_million: 21000\n  currency: KRW\n"), nil, cost.Prices{Currency: "KRW", Output: 21_000_000_000_000}},
		{
			"environment", "",
			[]string{"RAGD_COST_INPUT_PER_MILLION=0.3", "RAGD_COST_CACHED_INPUT_PER_MILLION=0", "RAGD_COST_CURRENCY=원"},
			cost.Prices{Currency: "원", Input: 300_000_000},
		},
		{"machine", "", []string{"RAGD_COST_MACHINE_PER_HOUR=0.36"}, cost.Prices{Currency: "USD", MachineHour: 360_000_000}},
	} {
		cfg, err := Load(c.path, c.env, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, err := cfg.Cost.Prices(); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
	for value, field := range map[string]string{
		"RAGD_COST_INPUT_PER_MILLION=cheap":        "cost.input_per_million",
		"RAGD_COST_OUTPUT_PER_MILLION=-1":          "cost.output_per_million",
		"RAGD_COST_CACHED_INPUT_PER_MILLION=1e3":   "cost.cached_input_per_million",
		"RAGD_COST_MACHINE_PER_HOUR=0.1234567891":  "cost.machine_per_hour",
		"RAGD_COST_CURRENCY=a currency of my own":  "cost.currency",
		"RAGD_COST_CURRENCY=a b":                   "cost.currency",
		"RAGD_COST_CURRENCY=":                      "cost.currency",
		"RAGD_COST_INPUT_PER_MILLION=1000000.0001": "cost.input_per_million",
	} {
		_, err := Load("", []string{value}, nil)
		var e *FieldError
		if !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", value, err)
		}
	}
	if _, err := Load("", []string{"RAGD_COST_INPUT_PER_MILLION=1", "RAGD_COST_MACHINE_PER_HOUR=1"}, nil); err == nil {
		t.Error("the same work has two prices")
	}
}
