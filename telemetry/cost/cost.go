// Package cost prices what a request used. Money is whole billionths of a
// currency unit, so that sums are exact and no float comes near it.
package cost

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Amount is money in billionths of a currency unit.
type Amount int64

const (
	unit   = 1_000_000_000
	places = 9
	// Most is the largest price: beyond it sums could leave 64 bits.
	Most Amount = 1_000_000 * unit
)

// ErrAmount is returned for text that is no price.
var ErrAmount = errors.New("not a price: a decimal number from 0 to 1000000 with at most 9 decimal places is wanted")

// Parse reads a decimal number such as 0.15.
func Parse(s string) (Amount, error) {
	whole, fraction, point := strings.Cut(s, ".")
	if len(fraction) > places || !digits(whole) || point && !digits(fraction) {
		return 0, fmt.Errorf("%w: %q", ErrAmount, s)
	}
	v, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", places-len(fraction)), 10, 64)
	if err != nil || Amount(v) > Most {
		return 0, fmt.Errorf("%w: %q", ErrAmount, s)
	}
	return Amount(v), nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// String is the exact decimal number, without needless zeros.
func (a Amount) String() string {
	sign := ""
	if a < 0 {
		sign = "-"
	}
	whole, fraction := a/unit, a%unit
	if whole < 0 {
		whole = -whole
	}
	if fraction < 0 {
		fraction = -fraction
	}
	if fraction == 0 {
		return fmt.Sprintf("%s%d", sign, whole)
	}
	return strings.TrimRight(fmt.Sprintf("%s%d.%09d", sign, whole, fraction), "0")
}

// MarshalJSON writes the exact decimal as a number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Amount) UnmarshalJSON(data []byte) (err error) {
	text, negative := strings.CutPrefix(string(data), "-")
	whole, fraction, _ := strings.Cut(text, ".")
	v, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", max(0, places-len(fraction))), 10, 64)
	if err != nil || len(fraction) > places {
		return fmt.Errorf("%w: %s", ErrAmount, data)
	}
	if negative {
		v = -v
	}
	*a = Amount(v)
	return nil
}

// Float is the nearest float64, for instruments that know nothing else.
func (a Amount) Float() float64 { return float64(a) / unit }

// Prices say what tokens cost, or what the machine costs that computes them. The
// zero value prices nothing.
type Prices struct {
	Currency string
	// Input, CachedInput and Output are for a million tokens.
	Input, CachedInput, Output Amount
	// MachineHour is for an hour of the engine's work. It counts when no tokens
	// have a price.
	MachineHour Amount
}

// Used is what a request took.
type Used struct {
	// InputTokens are those of the prompt, CachedTokens of them were in the prefix
	// cache.
	InputTokens, CachedTokens, OutputTokens int
	// Prefill and Decode are the request's share of the engine's time.
	Prefill, Decode time.Duration
}

// Cost is what a request cost. Each part is rounded to a billionth, half up; Total is
// their sum.
type Cost struct {
	Currency    string `json:"currency"`
	Input       Amount `json:"input"` // tokens that were not cached, or prefill
	CachedInput Amount `json:"cached_input"`
	Output      Amount `json:"output"` // tokens drawn, or decode
	Total       Amount `json:"total"`
}

// perToken reports whether tokens have prices.
func (p Prices) perToken() bool { return p.Input > 0 || p.CachedInput > 0 || p.Output > 0 }

// Of prices what was used. It is nil when there is no price.
func (p Prices) Of(u Used) *Cost {
	c := &Cost{Currency: p.Currency}
	switch {
	case p.perToken():
		c.Input = share(p.Input, int64(u.InputTokens-u.CachedTokens), 1_000_000)
		c.CachedInput = share(p.CachedInput, int64(u.CachedTokens), 1_000_000)
		c.Output = share(p.Output, int64(u.OutputTokens), 1_000_000)
	case p.MachineHour > 0:
		c.Input = share(p.MachineHour, int64(u.Prefill), int64(time.Hour))
		c.Output = share(p.MachineHour, int64(u.Decode), int64(time.Hour))
	default:
		return nil
	}
	c.Total = c.Input + c.CachedInput + c.Output
	return c
}

// share is price × n ÷ of, rounded half up.
func share(price Amount, n, of int64) Amount {
	if price <= 0 || n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(price), uint64(n))
	lo, carry := bits.Add64(lo, uint64(of)/2, 0)
	hi += carry
	if hi >= uint64(of) {
		return math.MaxInt64 / 4 // three parts of it still add up
	}
	q, _ := bits.Div64(hi, lo, uint64(of))
	return Amount(min(q, math.MaxInt64/4))
}
