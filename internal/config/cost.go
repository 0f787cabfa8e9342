package config

import (
	"fmt"

	"ragd/telemetry/cost"
)

// Cost is what the answer model costs: tokens by the million, or the machine by the
// hour. Prices are decimals of at most 9 places; empty ones are not set, and with
// none set nothing is priced.
type Cost struct {
	// Currency is a label, such as an ISO 4217 code.
	Currency        string `koanf:"currency"`
	InputPerMillion string `koanf:"input_per_million"`
	// CachedInputPerMillion is that of input where it is empty.
	CachedInputPerMillion string `koanf:"cached_input_per_million"`
	OutputPerMillion      string `koanf:"output_per_million"`
	// MachinePerHour prices the engine's own time.
	MachinePerHour string `koanf:"machine_per_hour"`
}

const mostCurrency = 8 // bytes

// Prices are the settings as numbers.
func (c Cost) Prices() (cost.Prices, error) {
	p := cost.Prices{Currency: c.Currency}
	cached := c.CachedInputPerMillion
	if cached == "" {
		cached = c.InputPerMillion
	}
	for _, f := range []struct {
		field, value string
		to           *cost.Amount
	}{
		{"cost.input_per_million", c.InputPerMillion, &p.Input},
		{"cost.cached_input_per_million", cached, &p.CachedInput},
		{"cost.output_per_million", c.OutputPerMillion, &p.Output},
		{"cost.machine_per_hour", c.MachinePerHour, &p.MachineHour},
	} {
		if f.value == "" {
			continue
		}
		v, err := cost.Parse(f.value)
		if err != nil {
			return p, &FieldError{f.field, err.Error()}
		}
		*f.to = v
	}
	return p, nil
}

func (c Cost) check() error {
	if _, err := c.Prices(); err != nil {
		return err
	}
	perToken := c.InputPerMillion != "" || c.CachedInputPerMillion != "" || c.OutputPerMillion != ""
	switch {
	case perToken && c.MachinePerHour != "":
		return &FieldError{"cost.machine_per_hour", "cannot be set beside prices of tokens: the same work would have two prices"}
	case c.Currency == "" || len(c.Currency) > mostCurrency:
		return &FieldError{"cost.currency", fmt.Sprintf("%q is not 1 to %d bytes", c.Currency, mostCurrency)}
	}
	for _, r := range c.Currency {
		if r <= ' ' || r == 0x7f || r == 0xfffd {
			return &FieldError{"cost.currency", fmt.Sprintf("%q has characters that are no part of a name", c.Currency)}
		}
	}
	return nil
}
