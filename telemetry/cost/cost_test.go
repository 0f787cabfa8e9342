package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func price(t testing.TB, s string) Amount {
	t.Helper()
	a, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestParse(t *testing.T) {
	for s, want := range map[string]Amount{
		"0": 0, "0.15": 150_000_000, "0.000000001": 1, "1000000": Most, "21000": 21_000 * unit, "1.50": 1_500_000_000, "007": 7 * unit,
	} {
		if got, err := Parse(s); err != nil || got != want {
			t.Errorf("%q: %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "0.0000000001", "1000000.000000001", "9223372036854775808", "1,5", "0x1", " 1", "NaN", "１"} {
		if got, err := Parse(s); !errors.Is(err, ErrAmount) {
			t.Errorf("%q is %d, %v", s, got, err)
		}
	}
}

// TestPublishedPrices holds sums that can be checked by hand.
func TestPublishedPrices(t *testing.T) {
	tokens := Prices{Currency: "USD", Input: price(t, "0.15"), CachedInput: price(t, "0.075"), Output: price(t, "0.60")}
	for _, c := range []struct {
		name   string
		prices Prices
		used   Used
		want   string
	}{
		// 700 × 0.15/10⁶ + 300 × 0.075/10⁶ + 50 × 0.60/10⁶
		{"tokens", tokens, Used{InputTokens: 1000, CachedTokens: 300, OutputTokens: 50}, `{"currency":"USD","input":0.000105,"cached_input":0.0000225,"output":0.00003,"total":0.0001575}`},
		{"nothing used", tokens, Used{}, `{"currency":"USD","input":0,"cached_input":0,"output":0,"total":0}`},
		// 0.36 an hour is 0.0001 a second.
		{
			"machine",
			Prices{Currency: "EUR", MachineHour: price(t, "0.36")},
			Used{InputTokens: 9, Prefill: 250 * time.Millisecond, Decode: 2 * time.Second},
			`{"currency":"EUR","input":0.000025,"cached_input":0,"output":0.0002,"total":0.000225}`,
		},
		{"won", Prices{Currency: "KRW", Output: price(t, "21000")}, Used{OutputTokens: 1}, `{"currency":"KRW","input":0,"cached_input":0,"output":0.021,"total":0.021}`},
		{"no price", Prices{Currency: "USD"}, Used{InputTokens: 5}, `null`},
		// Half of a billionth goes up.
		{"rounding", Prices{Input: 500}, Used{InputTokens: 1000}, `{"currency":"","input":0.000000001,"cached_input":0,"output":0,"total":0.000000001}`},
	} {
		data, err := json.Marshal(c.prices.Of(c.used))
		if err != nil || string(data) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.name, data, err, c.want)
		}
	}
}

// TestAgainstRationals: every part is the exact value rounded half up, the parts are
// the total, and JSON keeps them.
func TestAgainstRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, int64(Most))
		count := rapid.IntRange(0, 10_000_000)
		p := Prices{Input: Amount(amount.Draw(t, "in")), CachedInput: Amount(amount.Draw(t, "cached")), Output: Amount(amount.Draw(t, "out")), MachineHour: 1}
		u := Used{OutputTokens: count.Draw(t, "output"), CachedTokens: count.Draw(t, "cached tokens")}
		u.InputTokens = u.CachedTokens + count.Draw(t, "new")
		c := p.Of(u)
		if c == nil || !p.perToken() {
			return
		}
		for _, part := range []struct {
			got   Amount
			price Amount
			n     int
		}{{c.Input, p.Input, u.InputTokens - u.CachedTokens}, {c.CachedInput, p.CachedInput, u.CachedTokens}, {c.Output, p.Output, u.OutputTokens}} {
			exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(int64(part.price)), big.NewInt(int64(part.n))), big.NewInt(1_000_000))
			exact.Add(exact, big.NewRat(1, 2))
			want := new(big.Int).Quo(exact.Num(), exact.Denom())
			if want.IsInt64() && want.Int64() <= 1<<60 && int64(part.got) != want.Int64() {
				t.Errorf("%d × %d is %d, want %s", part.price, part.n, part.got, want)
			}
		}
		if c.Total != c.Input+c.CachedInput+c.Output || c.Total < 0 {
			t.Errorf("%+v", c)
		}
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back Cost
		if err := json.Unmarshal(data, &back); err != nil || back != *c {
			t.Errorf("%+v became %+v by %s, %v", *c, back, data, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0.15", "1000000", "-1", "1e9", "0.0000000001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(a.String()); err != nil || again != a || a < 0 || a > Most {
			t.Errorf("%q is %d, written %q", s, a, a)
		}
	})
}

func ExamplePrices_Of() {
	input, _ := Parse("0.15")
	output, _ := Parse("0.60")
	c := Prices{Currency: "USD", Input: input, CachedInput: input, Output: output}.Of(Used{InputTokens: 1200, OutputTokens: 80})
	fmt.Println(c.Input, c.Output, c.Total, c.Currency)
	// Output: 0.00018 0.000048 0.000228 USD
}
